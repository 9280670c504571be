// An eslint rule for the direction of imports between the packages, and between the folders of some packages, type-only
// imports included: docs/how-it-works.md.
import { dirname, relative, resolve } from 'node:path';

/** The workspace packages that the sources of each package import. `*` at the end of a key stands for any rest. */
const ALLOWED = {
  zookeeper: [],
  pyyaml: [],
  core: [],
  store: ['core', 'zookeeper'],
  requestor: ['store', 'core', 'zookeeper'],
  config: ['core', 'pyyaml'],
  daemon: ['config', 'core', 'zookeeper', 'pyyaml'],
  status: ['daemon', 'config', 'store', 'core', 'zookeeper', 'pyyaml'],
  launcher: ['status', 'daemon', 'config', 'requestor', 'store', 'core', 'zookeeper', 'pyyaml'],
  builder: ['status', 'daemon', 'config', 'requestor', 'store', 'core', 'zookeeper', 'pyyaml'],
  plan: ['launcher', 'config', 'store', 'core', 'zookeeper'],
  cli: ['plan', 'daemon', 'config', 'requestor', 'store', 'core', 'zookeeper', 'pyyaml'],
  gateway: ['daemon', 'config', 'requestor', 'store', 'core', 'zookeeper', 'pyyaml'],
  'driver-kit': ['core', 'config'],
  'create-driver': [],
  'driver-*': ['core', 'pyyaml'],
};

/** The folders below `packages/NAME/src` that each folder imports. Files beside the folders import all of them. */
const FOLDERS = {
  launcher: {
    provider: [
      'scheduling',
      'requests',
      'launch',
      'supply',
      'pool',
      'quota',
      'maintenance',
      'deletion',
      'precedence',
      'capacity',
      'metrics',
    ],
    scheduling: ['requests', 'pool', 'quota', 'deletion', 'fairness', 'precedence', 'capacity', 'metrics'],
    requests: ['launch', 'pool', 'quota', 'deletion', 'precedence', 'capacity', 'metrics'],
    launch: ['pool', 'quota', 'capacity', 'metrics'],
    maintenance: ['supply', 'quota', 'deletion', 'precedence', 'metrics'],
    images: ['deletion', 'metrics'],
    supply: ['pool', 'deletion', 'precedence', 'metrics'],
    pool: ['quota', 'deletion', 'precedence', 'capacity', 'metrics'],
    quota: ['fairness', 'capacity', 'metrics'],
    fairness: [],
    deletion: ['precedence', 'metrics'],
    precedence: [],
    capacity: ['metrics'],
    metrics: [],
  },
  status: {
    web: ['documents', 'explain', 'history', 'timeline', 'metrics', 'facts', 'client'],
    documents: ['explain', 'history', 'timeline', 'metrics', 'facts', 'client'],
    explain: ['timeline', 'facts'],
    history: ['timeline', 'metrics', 'facts'],
    metrics: ['timeline', 'facts'],
    traces: ['timeline', 'facts'],
    timeline: ['facts'],
    facts: [],
    client: [],
  },
  store: {
    lists: ['requests', 'nodes', 'images', 'components'],
    resources: ['nodes', 'images'],
    requests: ['nodes', 'commit', 'tables', 'codec'],
    nodes: ['components', 'commit', 'tables', 'codec'],
    images: ['commit', 'tables', 'codec'],
    components: ['tables', 'codec'],
    demand: ['codec'],
    installation: ['nodes', 'codec'],
    commit: ['tables', 'codec'],
    tables: ['codec'],
    codec: [],
    connection: [],
  },
};

/** The files beside the folders that the folders import. */
const SHARED_FILES = {
  launcher: ['context.js', 'controller.js', 'record-fields.js'],
  store: ['context.js', 'errors.js', 'paths.js', 'znodes-below.js'],
};

/** Returns the packages that a package may import, or undefined if it is not restricted. */
function allowedFor(name) {
  if (Object.hasOwn(ALLOWED, name)) return ALLOWED[name];
  const prefix = Object.keys(ALLOWED).find((key) => key.endsWith('*') && name.startsWith(key.slice(0, -1)));
  return prefix === undefined ? undefined : ALLOWED[prefix];
}

/** Returns what a relative import violates, or undefined. `file`: path of the importing file below `src`. */
function folderViolation(name, file, source) {
  const folders = FOLDERS[name];
  const [from] = file.split('/');
  if (folders === undefined || from === file) return undefined;
  const target = relative('/', resolve('/', dirname(file), source)).replaceAll('\\', '/');
  const [to] = target.split('/');
  if (to === from) return undefined;
  const allowed = folders[from] ?? [];
  const shared = SHARED_FILES[name] ?? [];
  if (to === target ? shared.includes(to) : allowed.includes(to)) return undefined;
  return { from: `${name}/src/${from}`, to, allowed: [...allowed.map((folder) => `${folder}/`), ...shared].join(', ') };
}

export const importDirection = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      direction: 'The sources of packages/{{from}} may import {{allowed}}, but not {{to}}',
    },
  },
  create(context) {
    const [, from, file] = /\/packages\/([^/]+)\/src\/(.+)$/.exec(context.filename.replaceAll('\\', '/')) ?? [];
    const allowed = from === undefined ? undefined : allowedFor(from);
    if (allowed === undefined) return {};
    function check(node, source) {
      if (typeof source?.value !== 'string') return;
      if (source.value.startsWith('.')) {
        const violation = folderViolation(from, file, source.value);
        if (violation !== undefined) context.report({ node, messageId: 'direction', data: violation });
        return;
      }
      const to = /^@nodepool\/([^/]+)/.exec(source.value)?.[1];
      if (to === undefined || to === from || allowed.includes(to)) return;
      const names = allowed.length === 0 ? 'no other package' : allowed.map((name) => `@nodepool/${name}`).join(', ');
      context.report({ node, messageId: 'direction', data: { from, to: `@nodepool/${to}`, allowed: names } });
    }
    return {
      ImportDeclaration: (node) => check(node, node.source),
      ExportNamedDeclaration: (node) => check(node, node.source),
      ExportAllDeclaration: (node) => check(node, node.source),
      ImportExpression: (node) => check(node, node.source),
      TSImportType: (node) => check(node, node.source ?? node.argument?.literal),
    };
  },
};

// An eslint rule for the direction of imports between the packages, type-only imports included: docs/development.md.

/** The workspace packages that the sources of each package import. `*` at the end of a key stands for any rest. */
const ALLOWED = {
  zookeeper: [],
  pyyaml: [],
  core: [],
  store: ['core', 'zookeeper'],
  requestor: ['store', 'core', 'zookeeper'],
  config: ['core', 'pyyaml'],
  daemon: ['config', 'core', 'zookeeper', 'pyyaml'],
  launcher: ['daemon', 'config', 'requestor', 'store', 'core', 'zookeeper', 'pyyaml'],
  builder: ['daemon', 'config', 'requestor', 'store', 'core', 'zookeeper', 'pyyaml'],
  cli: ['daemon', 'config', 'requestor', 'store', 'core', 'zookeeper', 'pyyaml'],
  'driver-kit': ['core', 'config'],
  'create-driver': [],
  'driver-*': ['core', 'pyyaml'],
};

/** Returns the packages that a package may import, or undefined if it is not restricted. */
function allowedFor(name) {
  if (Object.hasOwn(ALLOWED, name)) return ALLOWED[name];
  const prefix = Object.keys(ALLOWED).find((key) => key.endsWith('*') && name.startsWith(key.slice(0, -1)));
  return prefix === undefined ? undefined : ALLOWED[prefix];
}

export const importDirection = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      direction: 'The sources of packages/{{from}} may import {{allowed}}, but not @nodepool/{{to}}',
    },
  },
  create(context) {
    const from = /\/packages\/([^/]+)\/src\//.exec(context.filename.replaceAll('\\', '/'))?.[1];
    const allowed = from === undefined ? undefined : allowedFor(from);
    if (allowed === undefined) return {};
    function check(node, source) {
      const to = typeof source?.value === 'string' ? /^@nodepool\/([^/]+)/.exec(source.value)?.[1] : undefined;
      if (to === undefined || to === from || allowed.includes(to)) return;
      const names = allowed.length === 0 ? 'no other package' : allowed.map((name) => `@nodepool/${name}`).join(', ');
      context.report({ node, messageId: 'direction', data: { from, to, allowed: names } });
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

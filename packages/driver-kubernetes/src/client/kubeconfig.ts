/** Reads the access to a cluster as `kubectl` does: a context of kubeconfig files, or the pod's service account. */

import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  booleanAt,
  ConfigurationError,
  entryNamed,
  errorCodeOf,
  isJsonObject,
  objectAt,
  fileFaultOf,
  stringAt,
  type JsonObject,
  type JsonValue,
} from '@nodepool/core';
import { LineIndex, parseYaml } from '@nodepool/pyyaml';

/** Environment in which files are searched; tests replace that of the process. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Folder with the files of the pod's service account. */
  readonly serviceAccount: string;
}

export interface ClusterAccess {
  /** Name of the context; undefined for the service account of a pod. */
  readonly context: string | undefined;
  /** e.g. `https://cluster.example:6443`; without a slash at the end. */
  readonly server: string;
  /** Certificates of the authorities, PEM; undefined for those of Node.js. */
  readonly ca: string | undefined;
  /** True if the server's certificate is not verified. */
  readonly insecure: boolean;
  readonly serverName: string | undefined;
  readonly token: string | undefined;
  /** File with a token that changes, which takes precedence over `token`. */
  readonly tokenFile: string | undefined;
  readonly basic: { readonly username: string; readonly password: string } | undefined;
  readonly clientCert: string | undefined;
  readonly clientKey: string | undefined;
  /** Origin for messages. */
  readonly source: string;
}

/** Credentials that need another program, which the launcher does not run. */
const UNSUPPORTED = ['exec', 'auth-provider'] as const;

/** Keys of users that act as another user. Without them, the launcher would have other permissions than expected. */
const IMPERSONATION = ['as', 'as-uid', 'as-groups', 'as-user-extra'] as const;

/** Returns the access of a context. Throws `ConfigurationError` with file and key if it is missing or incomplete. */
export function clusterAccess(contextName: string | undefined, where: Environment): ClusterAccess {
  const configured = where.env['KUBECONFIG'];
  const paths =
    configured === undefined || configured === '' ? [join(where.home, '.kube', 'config')] : configured.split(':');
  const files = paths.filter((path) => path !== '').flatMap((path) => readKubeconfig(path) ?? []);
  if (files.length > 0) return accessOf(contextName, files);
  const pod = inCluster(where);
  if (pod !== undefined && contextName === undefined) return pod;
  throw new ConfigurationError(
    `there is no kubeconfig file at ${paths.join(', ')}` +
      (contextName === undefined
        ? ', and the process does not run in a pod with a service account'
        : `, hence no context ${contextName}`) +
      '; name the file with KUBECONFIG',
  );
}

interface Kubeconfig {
  readonly path: string;
  readonly content: JsonObject;
}

function readKubeconfig(path: string): Kubeconfig | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined;
    throw new ConfigurationError(`${path} cannot be read: ${fileFaultOf(error)}`, { cause: error });
  }
  const { document, problems } = parseYaml(text);
  const [problem] = problems;
  if (problem !== undefined || document === undefined) {
    if (problem === undefined) throw new ConfigurationError(`${path} is empty; it is no kubeconfig file`);
    const { line, column } = new LineIndex(text).position(problem.span.start);
    throw new ConfigurationError(`${path}:${line}:${column}: expected ${problem.expected}, found ${problem.found}`);
  }
  const { value } = document;
  if (!isJsonObject(value)) throw new ConfigurationError(`${path} is not a kubeconfig file`);
  return { path, content: value };
}

interface Found {
  readonly section: JsonObject;
  readonly path: string;
}

/** Returns the entry of a list in the first file that has it, as `kubectl` merges files. */
function find(files: readonly Kubeconfig[], list: string, kind: string, name: string): Found {
  for (const { path, content } of files) {
    const entry = entryNamed(content, list, name);
    if (entry !== undefined) return { section: objectAt(entry.section, kind) ?? {}, path };
  }
  throw new ConfigurationError(`${files.map(({ path }) => path).join(', ')}: there is no ${kind} "${name}" in ${list}`);
}

function accessOf(contextName: string | undefined, files: readonly Kubeconfig[]): ClusterAccess {
  const current = files.map(({ content }) => stringAt(content, 'current-context')).find((each) => each);
  const name = contextName ?? current;
  if (name === undefined) {
    throw new ConfigurationError(`${files[0]?.path ?? ''}: there is no current-context; set "context" of the provider`);
  }
  const context = find(files, 'contexts', 'context', name);
  const cluster = find(files, 'clusters', 'cluster', stringAt(context.section, 'cluster') ?? '');
  const user = find(files, 'users', 'user', stringAt(context.section, 'user') ?? '');
  const source = `context ${name} of ${context.path}`;
  for (const key of UNSUPPORTED) {
    if (user.section[key] === undefined) continue;
    throw new ConfigurationError(
      `${source}: credentials of the kind "${key}" are not supported; use a token or a client certificate`,
    );
  }
  for (const key of IMPERSONATION) {
    if (!isSet(user.section[key])) continue;
    throw new ConfigurationError(`${source}: "${key}" of the user is not supported; use the credentials of that user`);
  }
  if (isSet(cluster.section['proxy-url'])) {
    throw new ConfigurationError(`${source}: "proxy-url" of the cluster is not supported; set HTTPS_PROXY instead`);
  }
  const server = stringAt(cluster.section, 'server') ?? '';
  if (!/^https?:\/\/[^/]/.test(server)) throw new ConfigurationError(`${source}: its cluster has no "server"`);
  const tokenFile = stringAt(user.section, 'tokenFile');
  const username = stringAt(user.section, 'username');
  return {
    context: name,
    server: server.replace(/\/+$/, ''),
    ca: pemOf(cluster, 'certificate-authority', source),
    insecure: booleanAt(cluster.section, 'insecure-skip-tls-verify') ?? false,
    serverName: stringAt(cluster.section, 'tls-server-name'),
    token: stringAt(user.section, 'token'),
    tokenFile: tokenFile === undefined ? undefined : resolve(dirname(user.path), tokenFile),
    basic: username === undefined ? undefined : { username, password: stringAt(user.section, 'password') ?? '' },
    clientCert: pemOf(user, 'client-certificate', source),
    clientKey: pemOf(user, 'client-key', source),
    source,
  };
}

/** Returns true if the value of a key has an effect in `kubectl`. */
function isSet(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/** Returns the PEM text of `<key>-data` or of the file `<key>`. */
function pemOf({ section, path }: Found, key: string, source: string): string | undefined {
  const data = stringAt(section, `${key}-data`);
  if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
  const file = stringAt(section, key);
  return file === undefined ? undefined : readText(resolve(dirname(path), file), source);
}

function inCluster({ env, serviceAccount }: Environment): ClusterAccess | undefined {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'];
  if (host === undefined || host === '' || port === undefined || port === '') return undefined;
  const source = `the service account in ${serviceAccount}`;
  return {
    context: undefined,
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: readText(join(serviceAccount, 'ca.crt'), source),
    insecure: false,
    serverName: undefined,
    token: undefined,
    tokenFile: join(serviceAccount, 'token'),
    basic: undefined,
    clientCert: undefined,
    clientKey: undefined,
    source,
  };
}

function readText(path: string, source: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`${source}: ${path} cannot be read: ${fileFaultOf(error)}`, { cause: error });
  }
}

/** Access to clusters: contexts of kubeconfig files, as kubectl reads them, and service accounts of pods. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { clusterAccess, type ClusterAccess, type Environment } from '../src/client/kubeconfig.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function where(more: Partial<Environment> = {}): Environment {
  return { env: {}, home: folder, serviceAccount: join(folder, 'account'), ...more };
}

const CONFIG = `
apiVersion: v1
kind: Config
current-context: second
clusters:
- name: one
  cluster: {server: "https://one.example:6443/", certificate-authority-data: ${Buffer.from('CA').toString('base64')}}
- name: two
  cluster:
    server: https://two.example
    certificate-authority: certs/ca.crt
    tls-server-name: internal
- name: three
  cluster: {server: "https://three.example", insecure-skip-tls-verify: true}
- {name: proxied, cluster: {server: "https://four.example", proxy-url: "http://proxy:3128"}}
users:
- {name: token, user: {token: secret}}
- {name: file, user: {tokenFile: token, token: ignored}}
- name: certificate
  user: {client-certificate: certs/ca.crt, client-key-data: ${Buffer.from('KEY').toString('base64')}}
- {name: basic, user: {username: u, password: p}}
- name: exec
  user: {exec: {command: aws}}
- name: another
  user: {token: secret, as: someone-else}
contexts:
- {name: first, context: {cluster: one, user: token}}
- {name: second, context: {cluster: two, user: file}}
- {name: third, context: {cluster: three, user: certificate}}
- {name: fourth, context: {cluster: three, user: basic}}
- {name: fifth, context: {cluster: one, user: exec}}
- {name: sixth, context: {cluster: none, user: token}}
- {name: eighth, context: {cluster: proxied, user: token}}
- {name: ninth, context: {cluster: one, user: another}}
`;

describe('a context', () => {
  let access: (name?: string) => ClusterAccess;

  beforeEach(() => {
    write('.kube/config', CONFIG);
    write('.kube/certs/ca.crt', 'PEM');
    access = (name) => clusterAccess(name, where());
  });

  it('has a server, an authority and a token', () => {
    expect(access('first')).toMatchObject({
      server: 'https://one.example:6443',
      ca: 'CA',
      token: 'secret',
      insecure: false,
    });
  });

  it('is the current one by default, with paths relative to the kubeconfig file', () => {
    expect(access()).toMatchObject({
      server: 'https://two.example',
      ca: 'PEM',
      serverName: 'internal',
      tokenFile: join(folder, '.kube', 'token'),
    });
  });

  it('can have a client certificate, a password, and an unverified server', () => {
    expect(access('third')).toMatchObject({ clientCert: 'PEM', clientKey: 'KEY', insecure: true, token: undefined });
    expect(access('fourth').basic).toEqual({ username: 'u', password: 'p' });
  });

  it.each([
    ['fifth', /context fifth of .*config: credentials of the kind "exec" are not supported/],
    ['sixth', /there is no cluster "none" in clusters/],
    ['eighth', /context eighth of .*config: "proxy-url" of the cluster is not supported; set HTTPS_PROXY/],
    ['ninth', /context ninth of .*config: "as" of the user is not supported; use the credentials of that user/],
    ['seventh', /there is no context "seventh" in contexts/],
  ])('%s is refused with the reason', (name, message) => {
    expect(() => access(name)).toThrow(message);
  });
});

it('KUBECONFIG names several files, and the first definition of a name applies', () => {
  const user = '{name: u, user: {token: first}}';
  const one = write('one', `users: [${user}]\ncontexts: [{name: c, context: {cluster: k, user: u}}]`);
  const two = write(
    'two',
    `users: [{name: u, user: {token: second}}]\nclusters: [{name: k, cluster: {server: 'http://k'}}]`,
  );
  const env = { KUBECONFIG: `${one}:${join(folder, 'missing')}:${two}` };
  expect(clusterAccess('c', where({ env }))).toMatchObject({ server: 'http://k', token: 'first' });
});

it('the service account of the pod applies if there is no file', () => {
  write('account/ca.crt', 'PEM');
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
  expect(clusterAccess(undefined, where({ env }))).toMatchObject({
    server: 'https://[fd00::1]:443',
    ca: 'PEM',
    tokenFile: join(folder, 'account', 'token'),
  });
  expect(() => clusterAccess('named', where({ env }))).toThrow(/hence no context named; name the file with KUBECONFIG/);
});

it('an error about invalid YAML contains the line, and not the content', () => {
  write('.kube/config', 'users:\n- {name: u, user: {token: secret\n');
  expect(() => clusterAccess(undefined, where())).toThrow(/config:\d+:\d+: expected valid YAML, found an error/);
  expect(() => clusterAccess(undefined, where())).not.toThrow(/secret/);
});

/** Creates a certificate authority, and certificates for a server and a client, with openssl. */

import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Paths of PEM files. */
export interface Certificates {
  readonly ca: string;
  readonly serverCert: string;
  readonly serverKey: string;
  /** Certificate followed by the PKCS#8 key: the format of ZooKeeper's key store. */
  readonly serverKeyStore: string;
  readonly clientCert: string;
  readonly clientKey: string;
}

const DAYS = '30';

/** Creates all certificates in `folder`, valid for `localhost` and 127.0.0.1. Creates the folder if it is missing. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  await mkdir(folder, { recursive: true });
  const caKey = join(folder, 'ca.key');
  const ca = join(folder, 'ca.pem');
  await makeKey(caKey);
  await openssl('req', '-x509', '-new', '-key', caKey, '-subj', '/CN=test authority', '-days', DAYS, '-out', ca);
  const server = await sign(folder, 'server', { ca, caKey });
  const client = await sign(folder, 'client', { ca, caKey });
  const serverKeyStore = join(folder, 'server-store.pem');
  await writeFile(serverKeyStore, (await readFile(server.cert, 'utf8')) + (await readFile(server.key, 'utf8')));
  return {
    ca,
    serverCert: server.cert,
    serverKey: server.key,
    serverKeyStore,
    clientCert: client.cert,
    clientKey: client.key,
  };
}

/** Creates a certificate for the key of `name` that expired yesterday, and returns its path. */
export async function expiredCertificate({ ca }: Pick<Certificates, 'ca'>, name: 'server' | 'client'): Promise<string> {
  const folder = dirname(ca);
  const cert = join(folder, `${name}-expired.pem`);
  await openssl(
    ...['x509', '-req', '-in', join(folder, `${name}.csr`), '-CA', ca, '-CAkey', join(folder, 'ca.key')],
    ...['-extfile', join(folder, `${name}.ext`), '-CAcreateserial', '-days', '-1', '-out', cert],
  );
  return cert;
}

async function sign(
  folder: string,
  name: string,
  authority: { readonly ca: string; readonly caKey: string },
): Promise<{ cert: string; key: string }> {
  const key = join(folder, `${name}.key`);
  const cert = join(folder, `${name}.pem`);
  const request = join(folder, `${name}.csr`);
  const extensions = join(folder, `${name}.ext`);
  await makeKey(key);
  await writeFile(extensions, 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  await openssl('req', '-new', '-key', key, '-subj', `/CN=${name}`, '-out', request);
  await openssl(
    ...['x509', '-req', '-in', request, '-CA', authority.ca, '-CAkey', authority.caKey, '-CAcreateserial'],
    ...['-extfile', extensions, '-days', DAYS, '-out', cert],
  );
  return { cert, key };
}

async function makeKey(file: string): Promise<void> {
  await openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', file);
}

async function openssl(...args: string[]): Promise<void> {
  try {
    await run('openssl', args);
  } catch (error) {
    throw new Error(`openssl ${args[0] ?? ''} failed; is openssl installed?`, { cause: error });
  }
}

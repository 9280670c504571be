/** The TLS certificate of simulated Azures. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expiredCertificate, makeCertificates } from '@nodepool/dev-zookeeper';

/** Contents of PEM files. */
export interface ServerCertificate {
  readonly cert: string;
  /** A certificate for the same key that has expired. */
  readonly expiredCert: string;
  readonly key: string;
  /** The authority that signed it. */
  readonly ca: string;
}

let made: Promise<ServerCertificate> | undefined;

/**
 * Returns the certificate of this process. All servers of a process share it, because openssl takes long to create one.
 */
export function serverCertificate(): Promise<ServerCertificate> {
  return (made ??= make());
}

async function make(): Promise<ServerCertificate> {
  const folder = await mkdtemp(join(tmpdir(), 'simulated-azure-'));
  try {
    const files = await makeCertificates(folder);
    const [cert, expiredCert, key, ca] = await Promise.all([
      readFile(files.serverCert, 'utf8'),
      readFile(await expiredCertificate(files, 'server'), 'utf8'),
      readFile(files.serverKey, 'utf8'),
      readFile(files.ca, 'utf8'),
    ]);
    return { cert, expiredCert, key, ca };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Checks the client certificate for ZooKeeper. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { fileFaultOf } from '@nodepool/core';
import type { ZooKeeperConfig } from '@nodepool/config';
import { Findings, type Finding } from './finding.js';

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;
const READABLE_BY_OTHERS = 0o004;

/** `now` is in milliseconds since the epoch. */
export async function checkCertificates({ tls }: ZooKeeperConfig, now: number): Promise<readonly Finding[]> {
  const findings = new Findings('certificates');
  if (tls === undefined) {
    findings.info(
      'zookeeper-tls',
      'not configured: the connections to ZooKeeper are neither encrypted nor authenticated',
    );
    return findings.list;
  }
  const certificate = await read(findings, tls.certFile, async (file) => new X509Certificate(await readFile(file)));
  if (certificate !== undefined) checkExpiry(certificate, tls.certFile, now, findings, RENEWALS.client);
  const ca = await read(findings, tls.caFile, async (file) => certificatesIn(await readFile(file, 'utf8')));
  for (const each of ca ?? [])
    checkExpiry(each, `${tls.caFile} (${each.subject.replaceAll('\n', ', ')})`, now, findings, RENEWALS.authority);
  const key = await read(findings, tls.keyFile, async (file) => createPrivateKey(await readFile(file)));
  if (key === undefined) return findings.list;
  if (certificate !== undefined && !certificate.checkPrivateKey(key)) {
    findings.error(tls.keyFile, `is not the key of ${tls.certFile}`, 'configure a certificate and its key');
  }
  if (((await stat(tls.keyFile)).mode & READABLE_BY_OTHERS) !== 0) {
    findings.warning(tls.keyFile, 'every user of this machine can read the key', `chmod o-r ${tls.keyFile}`);
  }
  return findings.list;
}

function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error('the file has no certificate');
  return blocks.map((block) => new X509Certificate(block));
}

async function read<T>(findings: Findings, file: string, work: (file: string) => Promise<T>): Promise<T | undefined> {
  try {
    return await work(file);
  } catch (error) {
    findings.error(file, `cannot be used: ${fileFaultOf(error)}`, 'provide a PEM file that this user can read');
    return undefined;
  }
}

/** Remedies for expired certificates by their owner. */
export const RENEWALS = {
  client: 'renew the certificate; the programs use the new file from their next connection on',
  authority: 'install a new certificate of the authority in zookeeper-tls.ca of all programs and at every server',
  server: 'renew the certificate at this server, and restart the server unless it reloads its key store',
} as const;

/** Reports when the certificate expires. `now` is in milliseconds since the epoch, `renew` the remedy. */
export function checkExpiry(
  certificate: X509Certificate,
  name: string,
  now: number,
  findings: Findings,
  renew: string,
): void {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const day = new Date(to).toISOString().slice(0, 10);
  const days = Math.floor((to - now) / DAY_MS);
  if (now > to) findings.error(name, `expired on ${day}`, renew);
  else if (now < from) {
    const start = new Date(from).toISOString();
    findings.error(name, `is valid from ${start} on only`, 'correct the clock of this machine, or the certificate');
  } else if (days <= SOON_DAYS) findings.warning(name, `expires in ${days} days, on ${day}`, renew);
  else findings.ok(name, `valid until ${day}`);
}

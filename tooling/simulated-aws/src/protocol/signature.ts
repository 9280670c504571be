/** Amazon's signatures, version 4: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html. */

import { createHash, createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface SignedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The claims that a request makes with its signature. */
export interface Claim {
  readonly accessKeyId: string;
  /** e.g. `20260101`. */
  readonly day: string;
  readonly region: string;
  readonly service: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  /** e.g. `20260101T120000Z`. */
  readonly time: string;
  readonly sessionToken: string | undefined;
  /** Lifetime of a presigned URL in seconds. */
  readonly expiresSeconds: number | undefined;
}

const SCOPE = String.raw`([^/,\s]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request`;
const HEADER = new RegExp(`^AWS4-HMAC-SHA256 Credential=${SCOPE}, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$`);

/** Returns what the request's signature claims; undefined if it has no well-formed signature. */
export function claimOf({ headers, url }: Pick<SignedRequest, 'headers' | 'url'>): Claim | undefined {
  const query = url.searchParams;
  const match = HEADER.exec(headers.authorization ?? '');
  if (match !== null) {
    const [, accessKeyId = '', day = '', region = '', service = '', names = '', signature = ''] = match;
    return {
      ...{ accessKeyId, day, region, service, signature, expiresSeconds: undefined },
      signedHeaders: names.split(';'),
      time: headerText(headers['x-amz-date']) ?? '',
      sessionToken: headerText(headers['x-amz-security-token']),
    };
  }
  const [accessKeyId, day, region, service] = (query.get('X-Amz-Credential') ?? '').split('/');
  const signature = query.get('X-Amz-Signature');
  if (accessKeyId === undefined || day === undefined || region === undefined || service === undefined) return undefined;
  if (signature === null) return undefined;
  return {
    ...{ accessKeyId, day, region, service, signature },
    signedHeaders: (query.get('X-Amz-SignedHeaders') ?? '').split(';'),
    time: query.get('X-Amz-Date') ?? '',
    sessionToken: query.get('X-Amz-Security-Token') ?? undefined,
    expiresSeconds: Number(query.get('X-Amz-Expires') ?? '0'),
  };
}

/** Returns the time that a claim names in milliseconds since the epoch, or NaN. */
export function timeOf({ time }: Claim): number {
  return Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
}

/** Returns the signature that the request should have. */
export function signatureOf(request: SignedRequest, claim: Claim, secretAccessKey: string): string {
  const scope = `${claim.day}/${claim.region}/${claim.service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', claim.time, scope, sha256(canonicalRequest(request, claim))].join('\n');
  const parts = [claim.day, claim.region, claim.service, 'aws4_request'];
  const key = parts.reduce<Buffer>((last, part) => hmac(last, part), Buffer.from(`AWS4${secretAccessKey}`));
  return hmac(key, text).toString('hex');
}

function canonicalRequest(request: SignedRequest, claim: Claim): string {
  const { method, url, headers, body } = request;
  const once = decodeURIComponent(url.pathname).split('/').map(encode).join('/');
  // S3 encodes paths once, every other service twice.
  const path = claim.service === 's3' ? once : once.split('/').map(encode).join('/');
  const query = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]): readonly [string, string] => [encode(name), encode(value)])
    .sort(([a, x], [b, y]) => (a === b ? compare(x, y) : compare(a, b)))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const lines = claim.signedHeaders.map((name) => {
    const value = headers[name];
    const text = Array.isArray(value) ? value.join(',') : (value ?? '');
    return `${name}:${text.trim().replaceAll(/ +/g, ' ')}\n`;
  });
  return [method, path, query, lines.join(''), claim.signedHeaders.join(';'), payloadHash(request, claim, body)].join(
    '\n',
  );
}

function payloadHash({ headers }: SignedRequest, claim: Claim, body: Buffer): string {
  const declared = headerText(headers['x-amz-content-sha256']);
  if (declared !== undefined) return declared;
  return claim.expiresSeconds !== undefined && claim.service === 's3' ? 'UNSIGNED-PAYLOAD' : sha256(body);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

export function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}

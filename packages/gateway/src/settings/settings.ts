/** The settings of a gateway: `gateway.yaml`, and the file with the hashes of the tokens. */

import { isIPv4 } from 'node:net';
import { dirname, resolve } from 'node:path';
import type { FileForm } from '@nodepool/config';
import type { JsonObject } from '@nodepool/core';
import { readSettingsFile, SettingsError } from '@nodepool/daemon';
import type { Grant } from '../auth/principal.js';
import { MAX_LIFETIME_S, SETTINGS_SCHEMA, TOKENS_SCHEMA } from './schema.js';

export interface RequestLimits {
  /** Requests of one token per second, on average and at once. */
  readonly perSecond: number;
  readonly burst: number;
  /** Open streams of events, of all tokens and of one. */
  readonly streams: number;
  readonly streamsPerToken: number;
  readonly bodyBytes: number;
  readonly connections: number;
}

/** A claim that a token must have, with the permitted values; `*` in a text stands for any characters. */
export interface ClaimRule {
  readonly name: string;
  readonly values: readonly (string | number | boolean)[];
}

/** The rights of those tokens of an issuer that have all of the claims. */
export interface ClaimGrant {
  readonly claims: readonly ClaimRule[];
  readonly grant: Grant;
}

/** An issuer of OpenID Connect tokens. */
export interface Issuer {
  readonly name: string;
  readonly issuer: string;
  readonly audience: string;
  /** Address of the public keys; undefined to ask the issuer. */
  readonly jwksUri: string | undefined;
  readonly grants: readonly ClaimGrant[];
}

/** A token, known by its hash. */
export interface TokenEntry {
  readonly sha256: Buffer;
  readonly grant: Grant;
}

export interface Settings {
  readonly listen: { readonly address: string; readonly port: number };
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly tokenFile: string | undefined;
  readonly tokens: readonly TokenEntry[];
  readonly issuers: readonly Issuer[];
  /** Seconds. */
  readonly defaultLifetime: number;
  /** Seconds for which ended leases can be read. */
  readonly retention: number;
  readonly limits: RequestLimits;
}

/** Reads the settings and the token file. Rejects with `SettingsError`. */
export async function readSettings(file: string): Promise<Settings> {
  const parsed = await readSettingsFile(file, {
    schema: SETTINGS_SCHEMA,
    interpret: (value, report) => interpret(file, value, report),
  });
  const { tokenFile } = parsed;
  const tokens = tokenFile === undefined ? [] : await readTokens(tokenFile, parsed.maxLifetime);
  const names = [...tokens, ...parsed.issuers.flatMap(({ grants }) => grants)].map(({ grant }) => grant.name);
  const repeated = names.filter((name, at) => names.indexOf(name) !== at);
  if (repeated.length > 0) {
    throw new SettingsError(file, [`${repeated.join(', ')}: the names of tokens and grants must be unique`]);
  }
  return { ...parsed, tokens };
}

/** Returns true if only programs on this host reach the address. */
export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}

async function readTokens(file: string, maxLifetime: number): Promise<readonly TokenEntry[]> {
  return readSettingsFile(file, {
    schema: TOKENS_SCHEMA,
    interpret: (value, report) =>
      objectsIn(value['tokens']).map((entry, at) => ({
        sha256: Buffer.from(textIn(entry['sha256']) ?? '', 'hex'),
        grant: grantOf(entry, maxLifetime, (path, expected) => report(['tokens', at, ...path], expected)),
      })),
  });
}

type Report = Parameters<FileForm<unknown>['interpret']>[1];

function interpret(
  file: string,
  value: JsonObject,
  report: Report,
): Omit<Settings, 'tokens'> & { readonly maxLifetime: number } {
  const listen = objectIn(value['listen']);
  const address = textIn(listen['address']) ?? '127.0.0.1';
  const tls = value['tls'] === undefined ? undefined : objectIn(value['tls']);
  if (tls === undefined && !isLoopback(address)) {
    report(['listen', 'address'], 'an address of this host only, such as 127.0.0.1, or "tls" to be set');
  }
  const maxLifetime = numberIn(value['max-lifetime']) ?? MAX_LIFETIME_S;
  const path = (name: string): string => resolve(dirname(file), name);
  const tokenFile = textIn(value['tokens']);
  if (tokenFile === undefined && objectsIn(value['issuers']).length === 0) {
    report([], '"tokens" or "issuers" to be set', 'without them no request is permitted');
  }
  return {
    listen: { address, port: numberIn(listen['port']) ?? 8007 },
    tls: tls === undefined ? undefined : { cert: path(textIn(tls['cert']) ?? ''), key: path(textIn(tls['key']) ?? '') },
    tokenFile: tokenFile === undefined ? undefined : path(tokenFile),
    issuers: objectsIn(value['issuers']).map((issuer, at) => issuerOf(issuer, maxLifetime, at, report)),
    defaultLifetime: Math.min(numberIn(value['default-lifetime']) ?? 3600, maxLifetime),
    maxLifetime,
    retention: numberIn(value['retention']) ?? 86_400,
    limits: limitsOf(objectIn(value['limits'])),
  };
}

function limitsOf(limits: JsonObject): RequestLimits {
  return {
    perSecond: numberIn(limits['requests-per-second']) ?? 50,
    burst: numberIn(limits['burst']) ?? 200,
    streams: numberIn(limits['streams']) ?? 1000,
    streamsPerToken: numberIn(limits['streams-per-token']) ?? 200,
    bodyBytes: numberIn(limits['body-bytes']) ?? 65_536,
    connections: numberIn(limits['connections']) ?? 4000,
  };
}

function issuerOf(value: JsonObject, maxLifetime: number, at: number, report: Report): Issuer {
  const uris = ['issuer', 'jwks-uri'] as const;
  for (const key of uris) {
    const uri = textIn(value[key]);
    if (uri !== undefined && !isSafeUri(uri)) report(['issuers', at, key], 'an https address');
  }
  return {
    name: textIn(value['name']) ?? '',
    issuer: textIn(value['issuer']) ?? '',
    audience: textIn(value['audience']) ?? '',
    jwksUri: textIn(value['jwks-uri']),
    grants: objectsIn(value['grants']).map((grant, index) => ({
      claims: Object.entries(objectIn(grant['claims'])).map(([name, permitted]) => ({
        name,
        values: (Array.isArray(permitted) ? permitted : [permitted]).filter(isClaimValue),
      })),
      grant: grantOf(grant, maxLifetime, (path, expected) =>
        report(['issuers', at, 'grants', index, ...path], expected),
      ),
    })),
  };
}

/** Returns true for https, and for http on this host, which tests and sidecars use. */
function isSafeUri(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
}

function grantOf(value: JsonObject, maxLifetime: number, report: Report): Grant {
  const { min = 0, max = 999, default: given } = numbersIn(value['priorities']);
  const standard = given ?? Math.min(Math.max(200, min), max);
  if (min > max || standard < min || standard > max) report(['priorities'], 'min <= default <= max');
  return {
    name: textIn(value['name']) ?? '',
    tenant: textIn(value['tenant']) ?? null,
    labels: Array.isArray(value['labels']) ? value['labels'].map(String) : [],
    priorities: { min, max, default: standard },
    maxNodes: numberIn(value['max-nodes']) ?? Infinity,
    maxLifetime: Math.min(numberIn(value['max-lifetime']) ?? maxLifetime, maxLifetime),
  };
}

function isClaimValue(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function objectIn(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(objectIn) : [];
}

function numbersIn(value: unknown): Readonly<Partial<Record<string, number>>> {
  return Object.fromEntries(Object.entries(objectIn(value)).filter(([, each]) => typeof each === 'number')) as Record<
    string,
    number
  >;
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

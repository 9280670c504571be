/** Fingerprints of configurations, with which launchers show that their configurations differ. */

import { createHash } from 'node:crypto';
import { settingsOfProvider } from './diff.js';
import type { NodepoolConfig } from './types.js';

interface ConfigurationPrints {
  /** Fingerprint of everything that launchers of the same providers have in common. */
  readonly fingerprint: string;
  readonly providers: Readonly<Record<string, string>>;
}

/** Length of a fingerprint in hexadecimal digits. */
const DIGITS = 12;

export function configurationPrints(config: NodepoolConfig): ConfigurationPrints {
  const providers = Object.fromEntries(
    [...config.providers].map(([name, provider]) => [name, printOf(settingsOfProvider(provider))]),
  );
  const { labels, diskImages, tenantLimits, fairShares, maxHoldAgeMs } = config;
  const common = { providers, labels, diskImages, tenantLimits, fairShares, maxHoldAgeMs };
  return { fingerprint: printOf(common), providers };
}

function printOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex').slice(0, DIGITS);
}

/** Returns a text that is equal for equal values. The order of members does not count. */
function canonical(value: unknown): string {
  if (value instanceof Map || value instanceof Set) return canonical([...value].map(canonical).sort());
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null)
    return typeof value === 'string' ? JSON.stringify(value) : String(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)
    .sort()
    .join(',')}}`;
}

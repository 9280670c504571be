/** Fingerprints of configurations, with which launchers show that their configurations differ. */

import { createHash } from 'node:crypto';
import { settingsOfProvider } from './diff.js';
import type { NodepoolConfig } from './types.js';

export interface ConfigurationPrints {
  /** Fingerprint of everything that launchers of the same providers have in common. */
  readonly fingerprint: string;
  readonly providers: Readonly<Record<string, string>>;
}

/** Length of a fingerprint in hexadecimal digits. */
const DIGITS = 12;

/** `pause` is awaited after each provider, because a large configuration takes a second of processor time. */
export async function configurationPrints(
  config: NodepoolConfig,
  pause: () => Promise<void>,
): Promise<ConfigurationPrints> {
  const providers: Record<string, string> = {};
  for (const [name, provider] of config.providers) {
    providers[name] = printOf(settingsOfProvider(provider));
    await pause();
  }
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

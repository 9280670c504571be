/** The disturbances of the matrix that every cloud can have. */

import type { CallFault } from '@nodepool/simulated-cloud';
import type { Target } from './target.js';

export interface Trouble {
  /** Sentence part for the table. */
  readonly title: string;
  readonly begin: (target: Target) => void;
  /** True if only launches that take longer than usual show it, so that it is noticed late. */
  readonly isNoticedLate?: boolean;
}

/** `Retry-After` of a maintenance page (s). */
const MAINTENANCE_S = 600;
const SLOW_ANSWER_MS = 5000;
const SLOW_BOOT_MS = 360_000;
const NEVER_MS = 86_400_000;

const failing = (title: string, fault: CallFault): Trouble => ({ title, begin: ({ fail }) => fail(fault) });

/** Disturbances of any cloud. */
export const TROUBLES: readonly Trouble[] = [
  { title: 'refusing connections', begin: ({ refuse }) => refuse() },
  failing('silent', { kind: 'hang', when: 'before' }),
  failing('closing connections without an answer', { kind: 'cut', when: 'before' }),
  { ...failing('answering after 5 s', { kind: 'latency', ms: SLOW_ANSWER_MS }), isNoticedLate: true },
  failing('answering 503', { kind: 'status', status: 503 }),
  failing('answering 503, Retry-After: 600', { kind: 'status', status: 503, retryAfter: MAINTENANCE_S }),
  failing('answering 429, Retry-After: 600', { kind: 'status', status: 429, retryAfter: MAINTENANCE_S }),
  failing("behind a proxy's page with 502", { kind: 'proxy', status: 502 }),
  failing("behind a proxy's page with 404", { kind: 'proxy', status: 404 }),
  failing("behind a proxy's page with 200", { kind: 'proxy', status: 200 }),
  { title: 'refusing the login', begin: ({ refuseLogin }) => refuseLogin() },
  { title: 'booting in 6 minutes', begin: ({ setBootTime }) => setBootTime(SLOW_BOOT_MS), isNoticedLate: true },
  {
    title: 'accepting creations and never finishing them',
    begin: ({ setBootTime }) => setBootTime(NEVER_MS),
    isNoticedLate: true,
  },
];

/** Disturbances of one cloud that are noticed late: an autoscaler may still add a node for such a pod. */
const LATE_SPECIAL: ReadonlySet<string> = new Set(['pods that fit on no node']);

/** Returns the disturbance of this title, of any cloud or only of the target's. */
export function troubleNamed(title: string): Trouble {
  const common = TROUBLES.find((each) => each.title === title);
  if (common !== undefined) return common;
  const begin = ({ special }: Target): void => {
    const beginSpecial = special.get(title);
    if (beginSpecial === undefined) throw new Error(`the cloud has no disturbance "${title}"`);
    beginSpecial();
  };
  return { title, begin, isNoticedLate: LATE_SPECIAL.has(title) };
}

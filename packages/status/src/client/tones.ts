/** The words and colours of states. */

import type { OfferStatus, ProviderState, RequestRow, WaitStatus } from './model.js';
import { badge, groupOf, type Tone } from './widgets.js';

const PROVIDER_STATES: Readonly<Record<ProviderState, readonly [string, Tone]>> = {
  starting: ['starting', 'busy'],
  serving: ['serving', 'good'],
  degraded: ['degraded', 'busy'],
  unreachable: ['unreachable', 'bad'],
  misconfigured: ['misconfigured', 'bad'],
  unavailable: ['unavailable', 'bad'],
  elsewhere: ['on another launcher', 'idle'],
  gone: ['without launcher', 'bad'],
};

export function providerBadge(state: ProviderState): HTMLElement {
  const [text, tone] = PROVIDER_STATES[state];
  return badge(text, tone);
}

export function providerTone(state: ProviderState): Tone {
  return PROVIDER_STATES[state][1];
}

const REQUEST_STATES: Readonly<Record<RequestRow['state'], readonly [string, Tone]>> = {
  requested: ['waits', 'busy'],
  pending: ['in progress', 'idle'],
  fulfilled: ['fulfilled', 'good'],
  failed: ['failed', 'bad'],
  cancelled: ['cancelled', 'idle'],
  unseen: ['end not seen', 'idle'],
};

export function requestBadge(state: RequestRow['state']): HTMLElement {
  const [text, tone] = REQUEST_STATES[state];
  return badge(text, tone);
}

const NODE_TONES: Readonly<Record<string, Tone>> = {
  building: 'busy',
  ready: 'good',
  failed: 'bad',
};

export function nodeBadge(state: string): HTMLElement {
  return badge(state, NODE_TONES[groupOf(state) ?? ''] ?? 'idle');
}

const REASONS: Readonly<Record<WaitStatus['phase'], string>> = {
  limit: 'limit',
  order: 'order',
  capacity: 'capacity',
  image: 'image',
  elsewhere: 'other launcher',
  none: 'no pool',
};

/** Returns the kind of a reason to wait, in the colour that timelines give it. */
export function reasonBadge(phase: WaitStatus['phase']): HTMLElement {
  const element = badge(REASONS[phase], phase === 'none' ? 'bad' : 'idle');
  element.classList.add(`reason-${phase}`);
  return element;
}

const OFFER_STATES: Readonly<Record<OfferStatus['state'], readonly [string, Tone]>> = {
  closed: ['healthy', 'good'],
  'half-open': ['on trial', 'busy'],
  open: ['suspended', 'bad'],
};

export function offerBadge(state: OfferStatus['state']): HTMLElement {
  const [text, tone] = OFFER_STATES[state];
  return badge(text, tone);
}

const IMAGE_TONES: Readonly<Record<string, Tone>> = {
  ready: 'good',
  building: 'busy',
  uploading: 'busy',
  failed: 'bad',
  current: 'good',
  uploaded: 'busy',
  'launch-tested': 'busy',
  canary: 'busy',
  rejected: 'bad',
  revoked: 'bad',
};

export function imageBadge(state: string, progress: number | null = null): HTMLElement {
  const percent = progress === null || state !== 'uploading' ? '' : ` ${Math.round(progress)} %`;
  return badge(`${state}${percent}`, IMAGE_TONES[state] ?? 'idle');
}

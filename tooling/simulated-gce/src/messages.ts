/** JSON messages of the API, and the syntax of names, labels and times. */

/** A JSON message of the API. The published definitions validate it in both directions. */
export type Message = Readonly<Record<string, unknown>>;

export function textAt(message: Message, key: string): string | undefined {
  const value = message[key];
  return typeof value === 'string' ? value : undefined;
}

export function messageAt(message: Message, key: string): Message {
  return asMessage(message[key]);
}

export function messagesAt(message: Message, key: string): readonly Message[] {
  const value = message[key];
  return Array.isArray(value) ? value.map(asMessage) : [];
}

export function textsAt(message: Message, key: string): Readonly<Record<string, string>> {
  const entries = Object.entries(messageAt(message, key));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

export function asMessage(value: unknown): Message {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Message) : {};
}

/** Returns a time in the API's format. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '-00:00');
}

/** Syntax of resource names. */
export const NAME = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;

const LABEL_KEY = /^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$/u;
const LABEL_VALUE = /^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$/u;

/** Returns why labels are invalid, or undefined if they are valid. */
export function labelProblem(labels: Readonly<Record<string, string>>): string | undefined {
  const wrong = Object.entries(labels).find(([key, value]) => !LABEL_KEY.test(key) || !LABEL_VALUE.test(value));
  return wrong === undefined ? undefined : `Invalid value for field 'resource.labels': '${wrong[0]}=${wrong[1]}'`;
}

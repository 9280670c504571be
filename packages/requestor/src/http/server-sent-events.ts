/** Reads server-sent events (WHATWG HTML, section 9.2.6). */

import { untilAborted, type Clock, type Timer } from '@nodepool/core';

export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
}

/** Longest silence of a stream, milliseconds; the gateway sends a comment every ten seconds. */
const SILENCE_MS = 35_000;
const MAX_EVENT_CHARACTERS = 5_000_000;

/**
 * Yields the events of an answer until it ends. Throws if it breaks, is silent for too long, or is too large, and the
 * reason of the signal after that has aborted: `fetch` of Node.js 22 can miss that once it has returned the answer.
 */
export async function* eventsOf(
  answer: Response,
  clock: Clock,
  signal?: AbortSignal,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const reading = withSilence(clock, reader);
      const part = await (signal === undefined ? reading : untilAborted(reading, signal));
      if (part.done) return;
      text += decoder.decode(part.value, { stream: true }).replaceAll('\r', '');
      if (text.length > MAX_EVENT_CHARACTERS) throw new Error('an event of the stream is too large');
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const event = parse(text.slice(0, end));
        text = text.slice(end + 2);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    // The error of a broken stream is known already.
    await reader.cancel().catch(() => undefined);
  }
}

async function withSilence(
  clock: Clock,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<Awaited<ReturnType<typeof reader.read>>> {
  let timer: Timer | undefined;
  const silence = new Promise<never>((_resolve, reject) => {
    timer = clock.schedule(SILENCE_MS, () => reject(new Error('the stream is silent')));
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    timer?.cancel();
  }
}

function parse(block: string): ServerSentEvent | undefined {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n') };
}

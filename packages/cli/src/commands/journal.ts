/** `nodepool journal`: prints the journals of the launchers. */

import { readJournals } from '../journals.js';
import type { OnStore } from '../options.js';
import type { ProcessIo } from '../process-io.js';

export async function journal(io: ProcessIo, launchers: readonly string[], onStore: OnStore): Promise<void> {
  for (const { text } of await readJournals(io, launchers, onStore)) io.out.print(text.trimEnd());
}

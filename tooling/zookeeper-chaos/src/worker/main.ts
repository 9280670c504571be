/** The client process. It executes the orders of its parent process, and exits when the parent process exits. */

import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { BusyClient } from './busy-client.js';
import type { Order, Report } from './protocol.js';

let clients: BusyClient[] = [];
let historyFile = '';

function report(what: Report): void {
  process.send?.(what);
}

async function execute(message: Order): Promise<void> {
  switch (message.order) {
    case 'start': {
      const { settings } = message;
      ({ historyFile } = settings);
      clients = settings.clients.map((name, index) => new BusyClient(name, settings, settings.seed + index));
      for (const client of clients) client.start();
      report('started');
      return;
    }
    case 'quiet':
      await Promise.all(clients.map((client) => client.quiet(message.withinMs)));
      report('quiet');
      return;
    case 'write': {
      const histories = await Promise.all(clients.map((client) => client.history(message.withinMs)));
      const file = createWriteStream(historyFile);
      for (const history of histories) file.write(`${JSON.stringify(history)}\n`);
      file.end();
      await finished(file);
      report('written');
      return;
    }
    case 'end':
      await Promise.all(clients.map((client) => client.close()));
      process.disconnect();
  }
}

process.on('message', (message) => {
  // Only the parent process writes to this pipe.
  execute(message as Order).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  });
});
process.on('disconnect', () => process.exit());

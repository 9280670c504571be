/** `/journal`: the requests and nodes of the last day as JSON lines, for `nodepool plan`. */

import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Route } from '@nodepool/daemon/web';
import type { WebRoutes } from './context.js';

const decompress = promisify(gunzip);

export const journalRoutes: WebRoutes = (app, { status }) => {
  if (status === undefined) return;
  const { recorder } = status;
  app.get<Route>('/journal', async (request, reply) => {
    const members = await recorder.exportJournal();
    void reply.headers({ 'Cache-Control': 'no-store', Vary: 'Accept-Encoding' }).type('application/jsonl');
    if (/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) {
      return reply.header('Content-Encoding', 'gzip').send(Buffer.concat(members));
    }
    return reply.send(Buffer.concat(await Promise.all(members.map((member) => decompress(member)))));
  });
};

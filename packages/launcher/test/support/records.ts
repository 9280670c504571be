/** Writes records as other programs do. */

import type { JsonObject } from '@nodepool/core';
import { isZooKeeperError } from '@nodepool/zookeeper';
import type { World } from './world.js';

/** Writes a record and its missing parents. */
export async function writeRecord(world: World, path: string, data: JsonObject): Promise<void> {
  const zk = world.server.connect();
  const parts = path.split('/').slice(1);
  const put = async (): Promise<void> => {
    for (let length = 1; length <= parts.length; length += 1) {
      const part = `/${parts.slice(0, length).join('/')}`;
      const content = part === path ? Buffer.from(JSON.stringify(data)) : Buffer.alloc(0);
      try {
        await zk.create(part, content);
      } catch (error) {
        if (!isZooKeeperError(error, 'node-exists')) throw error;
        if (part === path) await zk.set(part, content);
      }
    }
    await zk.close();
  };
  await world.during(put());
}

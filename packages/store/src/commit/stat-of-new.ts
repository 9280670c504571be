/** The stat of a znode that a transaction of this client has created: most servers do not return it. */

import type { Stat } from '@nodepool/zookeeper';
import type { StoreContext } from '../context.js';

/** Transaction ids are lower than those of any znode that was read, so that a read replaces this stat. */
const NEW_STAT: Stat = {
  czxid: 0n,
  mzxid: 0n,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 0,
  numChildren: 0,
  pzxid: 0n,
};

export function statOfNew({ clock }: StoreContext, data: Uint8Array): Stat {
  return { ...NEW_STAT, mtime: clock.now(), dataLength: data.length };
}

/** The behaviour of every ZooKeeper server, real or simulated: one section per file. */

import { describe } from '@jest/globals';
import { describeAccess, describeAccessControl } from './access.js';
import { describeCreationInTransactions, describeCreationModes } from './creation.js';
import {
  Harness,
  PlainHarness,
  type ClientLimitations,
  type PlainFactory,
  type PlainZooKeeper,
  type ZooKeeperFactory,
} from './harness.js';
import { describeInquiries } from './inquiries.js';
import { describeLocks } from './locks.js';
import { describeBadPaths, describeMissing, describeNames } from './names.js';
import { describeEventOrder, describeOrdering } from './ordering.js';
import { describeSessions } from './sessions.js';
import { describeTransactions } from './transactions.js';
import { describeTrees } from './trees.js';
import { describeVersions, describeVersionsInTransactions } from './versions.js';
import { describeMissedEvents, describeOneShotMatrix, describePersistentMatrix } from './watch-matrix.js';
import { describeWatches } from './watches.js';
import { describeZnodes } from './znodes.js';

/** The sections for any client, this one or the reference. */
function describePlain(harness: PlainHarness, limitations?: ClientLimitations): void {
  describeCreationModes(harness);
  describeNames(harness);
  describeMissing(harness, limitations);
  describeVersions(harness);
  describeAccess(harness, limitations);
  describeOneShotMatrix(harness);
  describeOrdering(harness);
}

/** All sections for this client, and `describeMore`, the tests of one type of server. */
export function describeZooKeeper(
  name: string,
  factory: ZooKeeperFactory,
  describeMore?: (harness: Harness) => void,
): void {
  describe(name, () => {
    const harness = new Harness(factory);
    describePlain(harness);
    describeZnodes(harness);
    describeCreationInTransactions(harness);
    describeBadPaths(harness);
    describeVersionsInTransactions(harness);
    describeAccessControl(harness);
    describeSessions(harness);
    describeTransactions(harness);
    describeWatches(harness);
    describePersistentMatrix(harness);
    describeMissedEvents(harness);
    describeEventOrder(harness);
    describeInquiries(harness);
    describeLocks(harness);
    describeTrees(harness);
    describeMore?.(harness);
  });
}

/** The sections for the reference client, which shows if a behaviour is the server's or this client's. */
export function describeReference(
  name: string,
  factory: PlainFactory<PlainZooKeeper>,
  limitations: ClientLimitations,
): void {
  describe(name, () => describePlain(new PlainHarness(factory), limitations));
}

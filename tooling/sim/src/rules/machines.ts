/** Rules about static machines: machines 1, 3 and 4. Machines 2 is in `rest.ts`. */

import type { Seen, SeenChange } from '../observed.js';
import { RACK } from '../site.js';
import type { Rule, CheckerView } from './rule.js';
import { nodesOf, textOf } from './values.js';

/** States of records whose machine is not used any more. */
const LEAVING: ReadonlySet<unknown> = new Set(['deleting', 'deleted']);

/** Settings of a node that its requestor relies on. */
const SETTINGS = ['type', 'hostname', 'username', 'connection_port', 'host_keys', 'slot'] as const;

/**
 * Time within which launchers stop allocating nodes of an unusable machine (ms): the last check plus the session of a
 * paused launcher.
 */
const DETECTION_MS = 30_000;

export function isOfMachine({ data }: Seen): boolean {
  return data['provider'] === RACK && data['external_id'] === data['hostname'];
}

/** Returns the slot of the record. */
export function slotOf({ data }: Seen): string {
  return `slot ${textOf(data['slot'])} of ${textOf(data['hostname'])}`;
}

/** Machines 1: a slot has one node at most. */
export function oneNodePerSlot({ observed }: CheckerView): Rule {
  return {
    number: 'M1',
    committed({ nodes }) {
      for (const { after } of nodes) {
        if (after === undefined || !isOfMachine(after) || LEAVING.has(after.data['state'])) continue;
        for (const other of observed.nodes.values()) {
          const isOther = other.id !== after.id && isOfMachine(other) && !LEAVING.has(other.data['state']);
          if (isOther && slotOf(other) === slotOf(after))
            return `${slotOf(after)} has node ${other.id} (${textOf(other.data['state'])}) and node ${after.id}`;
        }
      }
      return undefined;
    },
  };
}

/** Machines 3: the settings of a node that is allocated or in use do not change. */
export function usedMachinesStay(_: CheckerView): Rule {
  return {
    number: 'M3',
    committed({ nodes }) {
      for (const change of nodes) {
        const flaw = change.by === 'launcher' ? changedSettings(change) : undefined;
        if (flaw !== undefined) return flaw;
      }
      return undefined;
    },
  };
}

function changedSettings({ id, before, after }: SeenChange): string | undefined {
  if (before === undefined || after === undefined || !isOfMachine(before)) return undefined;
  const isUsed = textOf(after.data['allocated_to']) !== 'null' || before.holder === 'requestor';
  const changed = SETTINGS.find((field) => textOf(before.data[field]) !== textOf(after.data[field]));
  return isUsed && changed !== undefined ? `${changed} of node ${id} has changed, which is in use` : undefined;
}

/** Machines 4: a node of an unusable machine is not allocated. */
export function usableMachinesOnly(view: CheckerView): Rule {
  const { observed } = view;
  return {
    number: 'M4',
    committed({ requests }) {
      for (const { id, before, after } of requests) {
        if (after?.data['state'] !== 'fulfilled' || before?.data['state'] === 'fulfilled') continue;
        for (const nodeId of nodesOf(after.data)) {
          const node = observed.nodes.get(nodeId);
          if (node === undefined || !isOfMachine(node)) continue;
          const host = textOf(node.data['hostname']);
          const since = view.unusableSince(host);
          const unusableMs = since === undefined ? 0 : view.now() - since;
          if (unusableMs > DETECTION_MS)
            return `request ${id} got node ${nodeId}, whose machine ${host} has been unusable for ${unusableMs} ms`;
        }
      }
      return undefined;
    },
  };
}

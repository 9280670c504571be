/** Checks of the framework around each step of a creation machine. */

import { creationError } from '../applied-calls.js';
import type { Instance } from '../api.js';
import { DriverError, toDriverError } from '../errors.js';
import type { Advance, MachineCall, StateMachine } from '../state-machine-api.js';
import { hasIdentity, ownListing, type InstanceIdentity } from './instance-identity.js';

/** Checks around each step of a machine. */
export interface StepGuard {
  /** Returns the call that the machine gets. */
  before(call: MachineCall): MachineCall;
  /** Returns the result of the step, or throws. */
  after(advance: Advance): Advance;
  /** Returns the error that replaces that of a failed step. */
  failed(error: unknown, call: MachineCall, machine: StateMachine): DriverError;
}

/**
 * Returns the guard of a creation machine. It hides instances of another identity from the machine, and corrects the
 * outcome of its error. `identity` is undefined if ids are unique.
 */
export function creationGuard(identity: InstanceIdentity | undefined): StepGuard {
  return {
    before: (call) => (identity === undefined || call.listing === undefined ? call : ownCall(call, identity)),
    after: (advance) => (identity === undefined ? advance : checked(advance, identity)),
    failed: (error, call, machine) =>
      creationError(toDriverError(error), call.signal, machine.externalId !== undefined),
  };
}

function ownCall(call: MachineCall, identity: InstanceIdentity): MachineCall {
  return { ...call, listing: call.listing && ownListing(call.listing, identity) };
}

function checked(advance: Advance, identity: InstanceIdentity): Advance {
  if (advance.next !== 'complete' || advance.instance === undefined) return advance;
  if (hasIdentity(tagsOf(advance.instance), identity)) return advance;
  const message = `the launch of node ${identity.nodeId} ended with an instance of another launch`;
  throw new DriverError('unexpected', `${message}; this is a defect of the driver`);
}

/** Returns the tags of an instance, which a defective driver may omit. */
function tagsOf({ tags }: Partial<Pick<Instance, 'tags'>>): Instance['tags'] {
  return tags ?? {};
}

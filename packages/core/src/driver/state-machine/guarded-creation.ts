/** A creation machine whose results the framework checks. */

import type { JsonValue } from '../../model/json.js';
import type { ExternalId } from '../../model/node.js';
import { creationError } from '../applied-calls.js';
import type { Instance } from '../api.js';
import { DriverError, toDriverError } from '../errors.js';
import type { Advance, MachineCall, StateMachine } from '../state-machine-api.js';
import { hasIdentity, ownListing, type InstanceIdentity } from './instance-identity.js';

/**
 * A machine that wraps the adapter's creation machine. It corrects the outcome of its error, and hides instances of
 * another identity from it.
 */
export class GuardedCreation implements StateMachine {
  /** `identity` is undefined if ids are unique. */
  constructor(
    private readonly inner: StateMachine,
    private readonly identity: InstanceIdentity | undefined,
  ) {}

  get state(): string {
    return this.inner.state;
  }

  get externalId(): ExternalId | undefined {
    return this.inner.externalId;
  }

  save(): JsonValue {
    return this.inner.save();
  }

  advance(call: MachineCall): Advance {
    const { inner, identity } = this;
    try {
      if (identity === undefined || call.listing === undefined) return this.checked(inner.advance(call));
      return this.checked(inner.advance({ ...call, listing: ownListing(call.listing, identity) }));
    } catch (error) {
      throw creationError(toDriverError(error), call.signal, inner.externalId !== undefined);
    }
  }

  private checked(advance: Advance): Advance {
    const { identity } = this;
    if (advance.next !== 'complete' || advance.instance === undefined || identity === undefined) return advance;
    if (hasIdentity(tagsOf(advance.instance), identity)) return advance;
    const message = `the launch of node ${identity.nodeId} ended with an instance of another launch`;
    throw new DriverError('unexpected', `${message}; this is a defect of the driver`);
  }
}

/** Returns the tags of an instance, which a defective driver may omit. */
function tagsOf({ tags }: Partial<Pick<Instance, 'tags'>>): Instance['tags'] {
  return tags ?? {};
}

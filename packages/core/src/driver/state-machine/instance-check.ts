/** Checks that an id still belongs to the instance of a launch, in clouds that use ids again. */

import type { ExternalId } from '../../model/node.js';
import { InstanceFailedError } from '../errors.js';
import type { Advance, MachineCall, StateMachine } from '../state-machine-api.js';
import { listedUnder, type InstanceIdentity } from './instance-identity.js';

/** Waits for one listing, which all waiting machines share, and fails if it shows another instance under the id. */
export class InstanceCheck implements StateMachine {
  readonly state = 'checking the instance';
  private asked = false;

  constructor(
    readonly externalId: ExternalId,
    private readonly identity: InstanceIdentity,
  ) {}

  advance({ listing }: MachineCall): Advance {
    if (!this.asked || listing === undefined) {
      this.asked = true;
      return { next: 'listing' };
    }
    if (listedUnder(listing, this.externalId, this.identity) !== 'another') return { next: 'complete' };
    throw new InstanceFailedError('the instance disappeared, and its id belongs to another instance');
  }

  save(): null {
    return null;
  }
}

/** State that all parts of the simulated cloud share. */

import { CloudState, type SimulatedCloudOptions } from '@nodepool/simulated-cloud';
import { Quotas } from './quotas.js';
import { DEFAULT_SETTINGS, type CloudSettings } from './settings.js';

export class OpenStackState extends CloudState<CloudSettings> {
  readonly quotas = new Quotas();

  constructor(options: SimulatedCloudOptions<CloudSettings>) {
    super(options, DEFAULT_SETTINGS);
  }

  /** `auth_url` for a `clouds.yaml`. */
  get authUrl(): string {
    return `${this.url}/identity/v3`;
  }
}

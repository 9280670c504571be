/** Mutations that violate each rule of the checker, to prove that the checker can fail. */

import type { Mutation } from '../mutation.js';
import { REQUESTS_MUTATIONS } from './requests.js';
import { INSTANCES_MUTATIONS } from './instances.js';
import { SETTINGS_MUTATIONS } from './settings.js';
import { MACHINES_MUTATIONS } from './machines.js';
import { BACKING_NODES_MUTATIONS } from './backing-nodes.js';
import { IMAGES_MUTATIONS } from './images.js';

export const MUTATIONS: readonly Mutation[] = [
  ...REQUESTS_MUTATIONS,
  ...INSTANCES_MUTATIONS,
  ...SETTINGS_MUTATIONS,
  ...MACHINES_MUTATIONS,
  ...BACKING_NODES_MUTATIONS,
  ...IMAGES_MUTATIONS,
];

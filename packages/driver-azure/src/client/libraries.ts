/** Microsoft's libraries for logins and HTTP, loaded when a provider starts: parsing a configuration needs none. */

import type * as Pipeline from '@azure/core-rest-pipeline';
import type * as Identity from '@azure/identity';
import { createRequire } from 'node:module';

const load = createRequire(__filename);

export function loadPipeline(): typeof Pipeline {
  return load('@azure/core-rest-pipeline') as typeof Pipeline;
}

export function loadIdentity(): typeof Identity {
  return load('@azure/identity') as typeof Identity;
}

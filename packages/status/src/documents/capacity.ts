/** The document of what limits leave for further nodes. */

import type { Capacity } from '../facts/capacity.js';
import type { Observed } from './sources.js';

export function capacityDocument({ status }: Observed): Capacity {
  return status.capacity();
}

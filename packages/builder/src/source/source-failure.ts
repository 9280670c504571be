/** The failure of a build whose image another program makes. */

import { BuildFailedError } from '../disk-image-creator.js';

export function sourceFailed(message: string, cause?: unknown): BuildFailedError {
  return new BuildFailedError('source', message, cause === undefined ? {} : { cause });
}

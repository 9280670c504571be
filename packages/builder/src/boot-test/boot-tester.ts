/** The interface to the boot test of a build. Implementation: `qemu-boot-tester.ts`. */

import type { BootTestConfig, Logger } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import type { DiskImageFile } from '../disk-image-files.js';

export interface BootTest {
  readonly build: BuildRef;
  /** The files of the build. The test boots one of them. */
  readonly files: readonly DiskImageFile[];
  readonly config: BootTestConfig;
  /** The user for the login of the command. */
  readonly username: string;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export interface BootTester {
  /**
   * Boots the build and waits for its login. Rejects with `BuildFailedError` if the build fails the test, or with the
   * signal's reason. Nothing of the machine is left.
   */
  test(test: BootTest): Promise<void>;
}

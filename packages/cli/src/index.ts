/** The command line of Nodepool, for programs that embed it. */
export { ExitCode, type Output } from './command-context.js';
export type { ProcessIo } from './process-io.js';
export { run } from './program.js';

/** Commands on leased nodes over ssh, for programs that use the system's ssh. */
export { posix, quote } from './quote.js';
export { findProgram, SSH_FAILED, SshClient, SshError, type ChildExit, type RunningChild } from './ssh-client.js';
export { bracketed, sshTarget, type SshTarget } from './target.js';

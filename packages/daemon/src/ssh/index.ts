/** Logins at nodes and test machines with the system's ssh. */

export { posix, quote, SSH_FAILED, sshOptions } from './options.js';
export { runOverSsh, type RemoteCommand, type RemoteResult } from './run-over-ssh.js';
export { findProgram, SshClient, type ChildExit, type RunningChild } from './ssh-client.js';
export { SshError } from './ssh-error.js';
export { bracketed, loginOf, sshTarget, type Login, type NodeTarget, type SshTarget } from './target.js';

/** Logins at nodes and test machines with the system's ssh. */

export { posix, quote, sshOptions } from './options.js';
export { runOverSsh, SSH_FAILED, type RemoteCommand, type RemoteResult } from './run-over-ssh.js';
export { loginOf, type Login, type SshTarget } from './target.js';

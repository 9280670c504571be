/**
 * The scripts that run on nodes, for any POSIX shell. A runner is detached from its ssh session, so that it survives
 * the connection and the bridge. Its folder, which only one `mkdir` can create, guards against a second start.
 */

import { quote } from '@nodepool/daemon/ssh';

/** Begins each line for the bridge; other lines come from programs of the image. */
export const MARK = 'nodepool-runner:';
/** Bytes of the runner's output that are passed on if it fails. */
const LOG_BYTES = 2000;
/** Tenths of a second for which a runner is checked often whether it is online. */
const OFTEN = 3000;
/** Tenths of a second that a runner has to end after SIGTERM. */
const GRACE = 100;
/** Name of the process that leads a runner's group; its argument is the runner's folder. */
const LEADER = 'nodepool-runner';

export interface StartSettings {
  readonly runner: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Starts the runner with the secret of the first line of standard input, and waits for its end. Prints `started`, or
 * `exists` if the runner was started before, then what `waitScript` prints.
 */
export function startScript({ runner, folder, environment }: StartSettings): string {
  return [
    ...prelude(runner),
    'umask 077',
    'mkdir -p "$HOME/.nodepool-runners"',
    'if mkdir "$d" 2>/dev/null; then',
    '  IFS= read -r ACTIONS_RUNNER_INPUT_JITCONFIG || { rmdir "$d"; exit 3; }',
    '  export ACTIONS_RUNNER_INPUT_JITCONFIG',
    ...Object.entries(environment).map(([name, value]) => `  ${name}=${quote(value)}; export ${name}`),
    `  cd ${quote(folder)} 2>"$d/log" || echo 127 >"$d/status"`,
    '  detach=; command -v setsid >/dev/null && detach=setsid',
    // Only the runner itself is in the background: another shell there would keep the ssh session open.
    '  if [ ! -e "$d/status" ]; then',
    `    $detach /bin/sh -c ${quote(DETACHED)} ${LEADER} "$d" </dev/null >"$d/log" 2>&1 &`,
    '  fi',
    '  say started',
    'else',
    '  say exists',
    'fi',
    'unset ACTIONS_RUNNER_INPUT_JITCONFIG',
    ...WAIT,
  ].join('\n');
}

/** Waits for a runner that was started before. Prints `absent`, or `online` once, and `ended STATUS` or `lost`. */
export function waitScript(runner: string): string {
  return [...prelude(runner), '[ -d "$d" ] || { say absent; exit 0; }', ...WAIT].join('\n');
}

/**
 * Ends a runner with all its processes, and deletes its folder. A process that has the id of an ended runner is left
 * alone. Only this form of `kill` works in every shell.
 */
export function stopScript(runner: string): string {
  return [
    ...prelude(runner),
    // A leader that has not stored its id yet ends because of this file, or because its folder is missing.
    'true 2>/dev/null >"$d/stop"',
    'p=$(cat "$d/pid" 2>/dev/null)',
    'if [ -n "$p" ] && ! foreign "$p"; then',
    '  kill -s TERM -- "-$p" 2>/dev/null || kill -s TERM "$p" 2>/dev/null',
    `  n=0; while [ $n -lt ${GRACE} ] && [ ! -e "$d/status" ] && kill -0 "$p" 2>/dev/null; do pause; n=$((n+1)); done`,
    '  kill -s KILL -- "-$p" 2>/dev/null || kill -s KILL "$p" 2>/dev/null',
    'fi',
    'rm -rf "$d"',
  ].join('\n');
}

function prelude(runner: string): readonly string[] {
  return [
    `r=${quote(runner)}; d="$HOME/.nodepool-runners/$r"`,
    `say() { printf '${MARK} %s\\n' "$*"; }`,
    'pause() { sleep 0.1 2>/dev/null || sleep 1; }',
    // Succeeds if the process runs, and its command is known not to be the leader of this runner.
    'command_of() { { tr "\\0" " " <"/proc/$1/cmdline" || ps -ww -o args= -p "$1"; } 2>/dev/null; }',
    'foreign() {',
    '  kill -0 "$1" 2>/dev/null || return 1',
    `  case "$(command_of "$1") " in " "|*" ${LEADER} "*"/.nodepool-runners/$r "*) return 1 ;; esac`,
    '}',
  ];
}

/** Leads the process group of the runner, and stores its exit status. Survives the signals that end the runner. */
const DETACHED = [
  'd=$1; echo "$$" >"$d/pid.new" && mv "$d/pid.new" "$d/pid" && [ ! -e "$d/stop" ] || exit 1',
  "trap '' HUP; trap : TERM",
  './run.sh',
  'echo "$?" >"$d/status.new"; mv "$d/status.new" "$d/status"',
].join('\n');

/** A process that ended without a status was killed, e.g. by a restart of the host. */
const WAIT = [
  'n=0; online=',
  'while [ ! -e "$d/status" ]; do',
  '  p=$(cat "$d/pid" 2>/dev/null)',
  '  if [ -n "$p" ] && { ! kill -0 "$p" 2>/dev/null || foreign "$p"; } && [ ! -e "$d/status" ]; then',
  '    say lost; exit 0',
  '  fi',
  `  if [ -z "$p" ] && [ $n -gt ${GRACE} ]; then say lost; exit 0; fi`,
  '  if [ -z "$online" ] && grep -q "Connected to GitHub" "$d/log" 2>/dev/null; then online=1; say online; fi',
  `  n=$((n+1)); if [ $n -lt ${OFTEN} ]; then pause; else sleep 1; fi`,
  'done',
  'if [ -z "$online" ] && grep -q "Connected to GitHub" "$d/log" 2>/dev/null; then say online; fi',
  `tail -c ${LOG_BYTES} "$d/log" 2>/dev/null`,
  // A line of its own, also after output that ends within a line.
  '[ -z "$(tail -c 1 "$d/log" 2>/dev/null)" ] || echo',
  'say ended "$(cat "$d/status")"',
  'rm -rf "$d"',
];

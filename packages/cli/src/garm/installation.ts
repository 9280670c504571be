/** The installation of a runner on a node: the script of GARM's template, and what must happen around it. */

import { createHash } from 'node:crypto';
import { quote } from '@nodepool/daemon/ssh';
import { CommandError } from '../command-context.js';
import type { Bootstrap, Tools } from './bootstrap.js';
import type { ExtraSpecs } from './settings.js';
import { renderTemplate } from './template.js';

/** Exit codes of the remote script. */
export const REMOTE_TRUNCATED = 97;
export const REMOTE_OCCUPIED = 98;

/** GitHub's names of the architectures that GARM knows. */
const GITHUB_ARCH: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64', arm: 'arm' };

/** Returns the script that installs the runner, as `runnerUser`. Throws `CommandError` if there is none. */
export function installScript(bootstrap: Bootstrap, specs: ExtraSpecs, runnerUser: string): string {
  if (bootstrap.os !== 'linux') throw new CommandError(`os_type ${bootstrap.os} is not supported; nodes run Linux`);
  if (specs.template === undefined) {
    throw new CommandError('no runner_install_template: use GARM 0.2, or set it in the extra specs of the pool');
  }
  const tools = toolsFor(bootstrap);
  return renderTemplate(specs.template, {
    ...{ FileName: tools?.filename ?? '', DownloadURL: tools?.downloadUrl ?? '' },
    TempDownloadToken: tools?.temporaryToken ?? '',
    ...{ RunnerUsername: runnerUser, RunnerGroup: runnerUser, RepoURL: bootstrap.repoUrl },
    ...{ MetadataURL: bootstrap.metadataUrl, CallbackURL: bootstrap.callbackUrl },
    ...{ CallbackToken: bootstrap.instanceToken, RunnerName: bootstrap.name },
    ...{ RunnerLabels: bootstrap.labels.join(','), CABundle: bootstrap.authorities },
    ...{ GitHubRunnerGroup: bootstrap.runnerGroup, EnableBootDebug: bootstrap.bootDebug },
    ...{ UseJITConfig: bootstrap.jitConfig, ExtraContext: specs.extraContext },
  });
}

/** Returns the script that runs on the node: certificates, scripts before the installation, the installation. */
export function nodeScript(bootstrap: Bootstrap, specs: ExtraSpecs, runnerUser: string): string {
  const install = Buffer.from(installScript(bootstrap, specs, runnerUser));
  const scripts = [...specs.preInstallScripts].map(([name, content], at) => {
    const file = `${at}-${name.replaceAll(/[^A-Za-z0-9_.-]/g, '_')}`;
    return `run_as_root ${quote(file)} <<'END'\n${wrapped(content)}\nEND`;
  });
  return [
    '#!/bin/bash',
    'umask 077',
    'folder=$(mktemp -d) && chmod 711 "$folder" || exit 1',
    `trap 'rm -rf "$folder"' EXIT`,
    'as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }',
    'run_as_root() { base64 -d >"$folder/$1" && chmod 700 "$folder/$1" && as_root "$folder/$1" </dev/null; }',
    ...(bootstrap.authorities === '' ? [] : [trustedAuthorities(bootstrap.authorities)]),
    ...scripts,
    `base64 -d >"$folder/install-runner" <<'END'\n${wrapped(install)}\nEND`,
    'chmod 500 "$folder/install-runner"',
    `if [ "$(id -un)" = ${quote(runnerUser)} ]; then bash -l "$folder/install-runner" </dev/null`,
    `else as_root chown ${quote(runnerUser)} "$folder/install-runner" &&`,
    `  as_root su -l -c "bash $folder/install-runner" ${quote(runnerUser)} </dev/null; fi`,
    '',
  ].join('\n');
}

/**
 * Returns the command that receives a script from stdin completely and starts it, and then ends. It starts one script
 * per lease: repeated with the same script, it changes nothing, and with another one it exits with `REMOTE_OCCUPIED`.
 */
export function startCommand(script: Buffer, lease: string, file: string): string {
  const hash = createHash('sha256').update(script).digest('hex');
  const name = quote(file);
  return [
    `(umask 077; set -C; cat >${name}) && [ "$(wc -c <${name})" -eq ${script.length} ] ||`,
    `  { rm -f ${name}; exit ${REMOTE_TRUNCATED}; }`,
    `mark="$HOME"/${quote(`.nodepool-garm-${lease}`)}`,
    'if ! mkdir -m 700 "$mark" 2>/dev/null; then',
    `  rm -f ${name}; [ "$(cat "$mark/script" 2>/dev/null)" = ${hash} ] || exit ${REMOTE_OCCUPIED}; exit 0`,
    'fi',
    // The file has no name while it runs, because it contains the token of the instance.
    `exec 9<${name}; rm -f ${name}`,
    `printf %s ${hash} >"$mark/script"`,
    'setsid nohup bash /dev/fd/9 >"$mark/log" 2>&1 </dev/null &',
  ].join('\n');
}

function toolsFor({ os, arch, tools }: Bootstrap): Tools | undefined {
  return tools.find((each) => each.os === os && each.architecture === (GITHUB_ARCH[arch] ?? arch));
}

/** Returns commands that trust certificates, as cloud-init does on Debian's and Red Hat's systems. */
function trustedAuthorities(pem: string): string {
  return [
    'authorities=/etc/pki/ca-trust/source/anchors update=update-ca-trust',
    '[ -d "$authorities" ] || authorities=/usr/local/share/ca-certificates update=update-ca-certificates',
    `base64 -d <<'END' | as_root tee "$authorities/garm-ca.crt" >/dev/null\n${wrapped(Buffer.from(pem))}\nEND`,
    'as_root chmod 644 "$authorities/garm-ca.crt"; as_root "$update" </dev/null',
  ].join('\n');
}

/** Returns base64 in lines, because a line of a here-document must not be too long for every shell. */
function wrapped(content: Buffer): string {
  return content
    .toString('base64')
    .replaceAll(/.{1,76}/g, '$&\n')
    .trimEnd();
}

/**
 * The commands of docs/deploying.md and docs/operating.md, as the pages show them: the rehearsal installs and upgrades
 * sites with them.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../command.js';

const PAGES = ['deploying.md', 'operating.md'] as const;
const MARKED = /<!-- executed by tooling\/release\/src\/rehearse\/guide\.ts -->\s+```sh\n(.*?)```/gs;
/** The pages restart launchers with systemd, and the rehearsal without it. */
const RESTART = 'systemctl restart nodepool-launcher';
const COMMAND_TIMEOUT_MS = 600_000;

/** One shown block. */
export type GuideBlock = 'site' | 'additions' | 'pack' | 'from-tarballs' | 'upgrade' | 'upgrade-driver' | 'roll-back';

/** A line that only the named block contains. */
const BLOCKS: Readonly<Record<GuideBlock, RegExp>> = {
  site: /^npm install @nodepool\/launcher @nodepool\/cli /m,
  additions: /^npm install @nodepool\/builder /m,
  pack: /^pnpm pack:all /m,
  'from-tarballs': /^npm install \S+\/\*\.tgz$/m,
  upgrade: /^npm install @nodepool\/launcher@latest /m,
  'upgrade-driver': /^npm install @nodepool\/driver-\w+@latest$/m,
  'roll-back': /^npm install @nodepool\/driver-\w+@\d+\.\d+\.\d+$/m,
};

export type Guide = Readonly<Record<GuideBlock, string>>;

/** Reads the pages of a checkout. Rejects if a block is missing, is there twice, or is unknown to the rehearsal. */
export async function readGuide(checkout: string): Promise<Guide> {
  const pages = await Promise.all(PAGES.map((page) => readFile(join(checkout, 'docs', page), 'utf8')));
  const shown = pages.flatMap((page) => [...page.matchAll(MARKED)].map(([, text = '']) => text.trim()));
  const unknown = shown.filter((text) => !Object.values(BLOCKS).some((line) => line.test(text)));
  if (unknown.length > 0) throw new Error(`the rehearsal does not know these commands of the pages: ${unknown[0]}`);
  const blockOf = (name: GuideBlock): string => {
    const [text, ...more] = shown.filter((each) => BLOCKS[name].test(each));
    if (text === undefined || more.length > 0) {
      throw new Error(`${PAGES.join(' and ')} need exactly one block with ${String(BLOCKS[name])}`);
    }
    return text;
  };
  return {
    site: blockOf('site'),
    additions: blockOf('additions'),
    pack: blockOf('pack'),
    'from-tarballs': blockOf('from-tarballs'),
    upgrade: blockOf('upgrade'),
    'upgrade-driver': blockOf('upgrade-driver'),
    'roll-back': blockOf('roll-back'),
  };
}

/** Texts of a page, with what the rehearsal uses: paths, and the driver that needs no account of a cloud. */
export type Substitutions = Readonly<Record<string, string>>;

/**
 * Runs a block in the folder with `sh`, and resolves with its output. Calls `restart` in the place of systemd. Rejects
 * if the block lacks a text to substitute.
 */
export async function follow(
  block: string,
  substitutions: Substitutions,
  {
    cwd,
    env,
    restart,
  }: { readonly cwd: string; readonly env: Readonly<Record<string, string>>; restart?: () => Promise<void> },
): Promise<string> {
  let text = block;
  for (const [shown, used] of Object.entries(substitutions)) {
    if (!text.includes(shown)) throw new Error(`the page no longer shows "${shown}" in: ${block}`);
    text = text.replaceAll(shown, used);
  }
  const lines = text.split('\n');
  const commands = lines.filter((line) => line !== RESTART);
  const output = await run('sh', ['-euc', commands.join('\n')], { cwd, env, timeoutMs: COMMAND_TIMEOUT_MS });
  if (commands.length < lines.length) await restart?.();
  return output;
}

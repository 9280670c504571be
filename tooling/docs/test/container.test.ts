/** The Dockerfile passes a linter, and its images run unattended without privileges. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { DockerfileParser, type Dockerfile, type Instruction } from 'dockerfile-ast';
import { validate, type ValidatorSettings } from 'dockerfile-utils';
import { ValidationSeverity } from 'dockerfile-utils/lib/main.js';
import { REPOSITORY } from '../src/repository.js';

const text = readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8');
const TARGETS = ['launcher', 'builder', 'gateway', 'bridge-github', 'cli'];

interface Stage {
  readonly name: string;
  readonly from: string;
  readonly instructions: readonly Instruction[];
}

function stagesOf(dockerfile: Dockerfile): readonly Stage[] {
  const stages: { name: string; from: string; instructions: Instruction[] }[] = [];
  for (const instruction of dockerfile.getInstructions()) {
    const [from = '', , name = ''] = instruction.getArguments().map((argument) => argument.getValue());
    if (instruction.getKeyword() === 'FROM') stages.push({ name, from, instructions: [] });
    else stages.at(-1)?.instructions.push(instruction);
  }
  return stages;
}

const stages = stagesOf(DockerfileParser.parse(text));

/** Returns the instructions with this keyword of a stage and of its base stages, in order. */
function inherited(name: string, keyword: string): readonly Instruction[] {
  const stage = stages.find((each) => each.name === name);
  if (stage === undefined) return [];
  const own = stage.instructions.filter((instruction) => instruction.getKeyword() === keyword);
  return [...inherited(stage.from, keyword), ...own];
}

/** Returns the text after the keyword, flags included. */
const contentOf = (instruction: Instruction | undefined): string =>
  instruction?.getTextContent().replace(/^\S+\s+/, '') ?? '';

describe('the Dockerfile', () => {
  it('passes the linter', () => {
    const strictest: ValidatorSettings = {
      deprecatedMaintainer: ValidationSeverity.ERROR,
      directiveCasing: ValidationSeverity.ERROR,
      emptyContinuationLine: ValidationSeverity.ERROR,
      instructionCasing: ValidationSeverity.ERROR,
      instructionCmdMultiple: ValidationSeverity.ERROR,
      instructionEntrypointMultiple: ValidationSeverity.ERROR,
      instructionHealthcheckMultiple: ValidationSeverity.ERROR,
      instructionJSONInSingleQuotes: ValidationSeverity.ERROR,
      instructionWorkdirRelative: ValidationSeverity.ERROR,
    };
    expect(validate(text, strictest).map(({ message }) => message)).toEqual([]);
    expect(validate('FROM a\nworkdir b\nENTRYPONT c\n', strictest)).toHaveLength(3);
  });

  it('has a stage for each program, the launcher last, and builds in other stages', () => {
    const names = ['build', 'base', 'cli', 'builder', 'gateway', 'bridge-github', 'launcher'];
    expect(stages.map(({ name }) => name)).toEqual(names);
    for (const target of TARGETS) expect(stages.find(({ name }) => name === target)?.from).toBe('base');
    const copied = inherited('launcher', 'COPY').map(contentOf);
    expect(copied).toEqual(['--from=build /opt/nodepool /opt/nodepool']);
  });

  it('has a pinned base image of a version that the packages support', () => {
    const [, tag = ''] = /^ARG NODE_IMAGE=[^:]+:(\S+)$/m.exec(text) ?? [];
    expect(tag).toMatch(/^\d+\.\d+\.\d+-bookworm-slim$/);
    const { engines } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
      readonly engines: { readonly node: string };
    };
    expect(tag.localeCompare(engines.node.replace('>=', ''), 'en', { numeric: true })).toBeGreaterThan(0);
    const others = stages.filter(({ from }) => from !== '${NODE_IMAGE}').map(({ from }) => from);
    expect(others).toEqual(TARGETS.map(() => 'base'));
  });

  it.each(TARGETS)('builds %s as an image without root, with a health check, signals and an own program', (target) => {
    expect(contentOf(inherited(target, 'USER').at(-1))).toBe('nodepool');
    const [health] = inherited(target, 'HEALTHCHECK');
    expect(contentOf(health)).toMatch(
      target === 'cli' ? /^NONE$/ : /^--interval=\S+ --timeout=\S+ --start-period=\S+ CMD \["node"/,
    );
    const entry = JSON.parse(contentOf(inherited(target, 'ENTRYPOINT').at(-1))) as string[];
    expect(entry.slice(0, 2)).toEqual(['/usr/bin/tini', '--']);
    const [program = ''] = entry.slice(2);
    const folder = join(REPOSITORY, 'packages', target);
    const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly bin: object };
    expect(Object.keys(bin)).toContain(program);
  });

  it('leaves no files of package managers and no secrets, and verifies downloads', () => {
    for (const { name, instructions } of stages) {
      for (const instruction of instructions) {
        const content = contentOf(instruction);
        if (content.includes('apt-get install')) {
          expect(content).toMatch(/apt-get update .*--no-install-recommends .*rm -rf \/var\/lib\/apt\/lists\/\*/s);
        }
        expect({ name, content }).toEqual({ name, content: expect.not.stringMatching(/curl|wget|chmod 777|--force/) });
        if (instruction.getKeyword() === 'ENV') expect(content).not.toMatch(/TOKEN|PASSWORD|SECRET|KEY/i);
        expect(instruction.getKeyword()).not.toBe('ADD');
      }
    }
  });

  it('packs the packages by the command that a site uses, and describes what it installs', () => {
    const build = stages.find(({ name }) => name === 'build')?.instructions.map(contentOf) ?? [];
    expect(build.join('\n')).toMatch(
      /pnpm pack:all --site \/packages\b.*npm install --omit=dev .*\/packages\/\*\.tgz.*npm sbom /s,
    );
  });

  it('excludes build results and files that no package contains from its context', () => {
    const ignored = readFileSync(join(REPOSITORY, '.dockerignore'), 'utf8').split('\n');
    expect(ignored).toEqual(expect.arrayContaining(['.git', '.tools', 'deploy', 'docs', '**/node_modules', '**/dist']));
  });
});

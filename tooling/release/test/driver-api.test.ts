/** Every member of the driver API has a caller: the programs call the interfaces, the frameworks those of adapters. */

import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { beforeAll, expect, it } from '@jest/globals';
import ts from 'typescript';
import { workspaceRoot } from '../src/workspace.js';

/** Interfaces that the programs call. */
const OF_PROGRAMS = [
  'Driver',
  'Provider',
  'ProviderNotifications',
  'NodeRequestHandler',
  'NodeRequestHandlerNotifications',
  'ImageManager',
];
/** Interfaces that the frameworks in core call. */
const OF_FRAMEWORKS = [
  'StateMachineDriver',
  'Adapter',
  'StateMachine',
  'SimpleTaskManagerDriver',
  'SimpleTaskManagerAdapter',
];

const root = workspaceRoot();
const PROGRAMS = ['packages/launcher/src', 'packages/builder/src', 'packages/config/src', 'packages/cli/src'];
const API = join(root, 'packages/core/src/driver');
const FRAMEWORKS = ['state-machine', 'simple'].map((folder) => join(API, folder));
/** Functions of core that the programs call with a provider. */
const CALLED_BY_PROGRAMS = ['supervised-provider.ts', 'cloud-deletion.ts'].map((file) => join(API, file));

const OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.Node16,
  moduleResolution: ts.ModuleResolutionKind.Node16,
  target: ts.ScriptTarget.ES2022,
  strict: true,
  noEmit: true,
  skipLibCheck: true,
};

function sourcesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts') && !file.includes('client/'))
    .map((file) => join(folder, file));
}

/** Members as `Interface.member`. */
let declared: ReadonlySet<string>;
let calledByPrograms: ReadonlySet<string>;
let calledByFrameworks: ReadonlySet<string>;

beforeAll(() => {
  const programFiles = PROGRAMS.flatMap((folder) => sourcesIn(join(root, folder)));
  const coreFiles = sourcesIn(API);
  // One program, so that common declarations are parsed once.
  const program = ts.createProgram([...programFiles, ...coreFiles], OPTIONS);
  declared = membersDeclaredIn(program, coreFiles);
  calledByPrograms = membersUsedIn(program, [...programFiles, ...CALLED_BY_PROGRAMS]);
  const frameworkFiles = coreFiles.filter((file) => FRAMEWORKS.some((folder) => file.startsWith(folder)));
  calledByFrameworks = membersUsedIn(program, frameworkFiles);
}, 300_000);

function membersDeclaredIn(program: ts.Program, files: readonly string[]): ReadonlySet<string> {
  const members = new Set<string>();
  for (const file of files) {
    program.getSourceFile(file)?.forEachChild((node) => {
      if (!ts.isInterfaceDeclaration(node)) return;
      for (const { name } of node.members) {
        if (name !== undefined && ts.isIdentifier(name)) members.add(`${node.name.text}.${name.text}`);
      }
    });
  }
  return members;
}

/** Returns the members of interfaces that the files read or call, if their names are in `declared`. */
function membersUsedIn(program: ts.Program, files: readonly string[]): ReadonlySet<string> {
  const checker = program.getTypeChecker();
  const used = new Set<string>();
  // Types are expensive to determine.
  const names = new Set([...declared].map((member) => member.slice(member.indexOf('.') + 1)));
  const add = (type: ts.Type, name: string): void => {
    for (const part of type.isUnionOrIntersection() ? type.types : [type]) {
      for (const { parent } of checker.getPropertyOfType(part, name)?.declarations ?? []) {
        if (ts.isInterfaceDeclaration(parent)) used.add(`${parent.name.text}.${name}`);
      }
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node) && names.has(node.name.text))
      add(checker.getTypeAtLocation(node.expression), node.name.text);
    if (ts.isObjectBindingPattern(node)) {
      for (const { propertyName, name } of node.elements) {
        const key = propertyName ?? name;
        if (ts.isIdentifier(key) && names.has(key.text)) add(checker.getTypeAtLocation(node), key.text);
      }
    }
    node.forEachChild(visit);
  };
  for (const file of files) {
    const source = program.getSourceFile(file);
    if (source === undefined) throw new Error(`the compiler does not know ${relative(root, file)}`);
    visit(source);
  }
  return used;
}

function uncalled(interfaces: readonly string[], called: ReadonlySet<string>): string[] {
  const members = [...declared].filter((member) => interfaces.includes(member.split('.')[0] ?? ''));
  expect(members.length).toBeGreaterThan(0);
  return members.filter((member) => !called.has(member));
}

it('the programs call every member of the interfaces that a driver implements', () => {
  expect(uncalled(OF_PROGRAMS, calledByPrograms)).toEqual([]);
});

it('the frameworks call every member of the interfaces that a driver on a framework implements', () => {
  expect(uncalled(OF_FRAMEWORKS, calledByFrameworks)).toEqual([]);
});

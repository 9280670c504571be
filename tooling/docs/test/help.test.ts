/** The reader of help texts. */

import { expect, it } from '@jest/globals';
import { parseHelp } from '../src/reference/help.js';

const HELP = `Usage: nodepool list [options] <kind>
       nodepool list --all

list the nodes
of a kind

Arguments:
  kind                 kind of the nodes (choices: "ready",
                       "used")

Options:
  -o, --format <form>  form of the result
  --detail             all columns (default: false)
  --a-rather-long-name <value>
                       on a line of its own (default: [])
  --version            print the version
  -h, --help           display help for command

Exit status: 0 done.

Example:
  $ nodepool list
`;

it('a help text is read with its usage, lists and notes', () => {
  expect(parseHelp('nodepool list', HELP)).toEqual({
    program: 'nodepool list',
    usage: 'nodepool list [options] <kind>\nnodepool list --all',
    description: 'list the nodes of a kind',
    commandArguments: [{ term: 'kind', text: 'kind of the nodes (choices: "ready", "used")' }],
    options: [
      { term: '-o, --format <form>', text: 'form of the result' },
      { term: '--detail', text: 'all columns' },
      { term: '--a-rather-long-name <value>', text: 'on a line of its own' },
    ],
    commands: [],
    signals: [],
    notes: ['Exit status: 0 done.'],
  });
});

it('a help text without an example or a usage is refused', () => {
  expect(() => parseHelp('nodepool list', HELP.replace('Example:', 'See:'))).toThrow('nodepool list has no example');
  expect(() => parseHelp('nodepool list', HELP.replace('Usage: ', ''))).toThrow('does not begin with its usage');
});

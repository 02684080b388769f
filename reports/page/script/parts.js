// What the other parts share. Texts reach the page through text nodes and attributes alone, never as markup.

const missing = '–';

/** An element; functions among its attributes listen to the event of that name, empty ones are left out. */
const make = (tag, attributes, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value.call) node.addEventListener(name, value);
    else if (value !== '') node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};

/** All elements of the page that a selector finds. */
const find = (selector) => document.querySelectorAll(selector);

const {floor, ceil, min, max} = Math;
const {isFinite: known} = Number;
const shown = (number, digits = 6) => (known(number) ? String(+number.toPrecision(digits)) : missing);
const short = (number) => shown(number, 3);

const box = (name, ...children) => make('div', {class: name}, ...children);
const status = (text = '') => make('p', {class: 'readout', role: 'status'}, text);

/** A text from a file so that every character of it is seen, on one line, in its own order. */
const visible = (text) => text.replace(/\n/g, '↵').replace(/\t/g, '⇥')
  .replace(/[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (sign) => '\\u' + sign.charCodeAt(0).toString(16).padStart(4, '0'));

/** A choice of texts; `change` gets the number of the chosen one. */
const chooser = (label, options, change, first = 0) => {
  const select = make('select', {change: () => change(+select.value)},
    ...options.map((text, value) => make('option', {value}, text)));
  select.value = first;
  return {node: make('label', {}, label, ' ', select), select};
};

/** A table of texts: the first `words` columns are no numbers, the first cell of a row is its heading. */
const table = (caption, words, headings, rows) => {
  const line = (cells, scope) => make('tr', {}, ...cells.map((cell, i) =>
    make(scope || !i ? 'th' : 'td', {scope: scope || (i ? '' : 'row'), class: i < words ? 'text' : ''}, cell)));
  const all = make('table', {}, make('caption', {}, caption), make('thead', {}, line(headings, 'col')),
    make('tbody', {}, ...rows.map((row) => line(row, ''))));
  sortable(all);
  return box('table', all);
};

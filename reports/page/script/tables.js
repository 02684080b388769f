// Tables are sorted by a button in each heading: up, down, as printed.

/** A cell as a number, as far as it begins with one: "12.4%", "0.2 [0.1, 0.3]", "<0.01", "4k". */
const number = (text) => {
  const found = /^[<>≤≥~≈]?\s*([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)(k?)(?![\w.:])/i.exec(text.replace(/−/g, '-'));
  return found ? parseFloat(found[1].replace(/,/g, '')) * (found[2] ? 1024 : 1) : NaN;
};
const order = new Intl.Collator('en', {numeric: true});

/** The keys of a column's cells, and how two of them compare. Cells without a value are undefined. */
const keys = (texts, natural) => {
  const known = texts.map((text) => (/^[-–—]?$/.test(text) ? undefined : text));
  const numbers = known.map((text) => text && number(text));
  return natural || numbers.some(Number.isNaN) ? [known, order.compare] : [numbers, (a, b) => a - b];
};

const sortable = (table) => {
  const body = table.tBodies[0];
  const groups = [[, []]];  // a heading over rows, and these rows as printed
  for (const row of body.rows) {
    if (row.className) groups.push([row, []]);
    else groups.at(-1)[1].push(row);
  }
  if (!groups.some(([, rows]) => rows.length > 1)) return;
  const all = groups.flatMap(([, rows]) => rows);
  const heads = [...[...table.tHead.rows].at(-1).cells];
  heads.forEach((head, column) => {
    const sort = () => {
      const way = {ascending: 'descending', descending: ''}[head.ariaSort] ?? 'ascending';
      for (const other of heads) other.ariaSort = other === head && way ? way : null;
      const sign = way === 'descending' ? -1 : 1;
      // "3.10" of a head is no decimal number.
      const [values, compare] = keys(all.map((row) => row.cells[column].textContent.trim()),
        head.className === 'text' || head.textContent === 'layer.head');
      const key = new Map(all.map((row, i) => [row, values[i]]));
      for (const [heading, rows] of groups) {
        if (heading) body.append(heading);
        body.append(...(way ? rows.toSorted((a, b) => {
          const [x, y] = [key.get(a), key.get(b)];
          return x === undefined || y === undefined ? (x === undefined) - (y === undefined) : sign * compare(x, y);
        }) : rows));
      }
    };
    const button = make('button', {type: 'button', class: 'sort', click: sort, title: 'Sort'});
    button.append(...head.childNodes);
    head.append(button);
  });
};

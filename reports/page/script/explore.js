// The heads of a sweep: a map, a scatter, and the page of one head. The data are those of explore_section.cpp.

const explore = (place, {colours, scatters, runs}, numbers) => {
  const shades = ramp(colours);
  // What is chosen: numbers of a run, a quantity, a length, a head (over all layers), and the scatter's quantities.
  const on = {run: -1};
  let run, pairs;
  const count = () => run.layers.length * run.heads;
  const layer = (at) => floor(at / run.heads);
  const title = (at) => `Layer ${run.layers[layer(at)]}, head ${at % run.heads} (${run.attention[layer(at)]})`;
  const one = (q) => run.quantities[q];
  const now = () => run.lengths[on.length].label;
  const values = (q, t = on.length) => numbers.subarray(one(q).at + t * count(), one(q).at + (t + 1) * count());
  const label = (q) => one(q).label;
  const titled = (q) => label(q) + (one(q).unit && ', ' + one(q).unit);
  const said = (q, at, t) => `${label(q)} ${shown(values(q, t)[at])}${one(q).unit && ' ' + one(q).unit}`;
  const hidden = (q, at) => one(q).name === 'bos_mass' && run.lengths[on.length].hidden.includes(layer(at));
  const ranked = (q, at) => {
    const all = values(q);
    return known(all[at]) ? String(1 + all.reduce((before, value) => before + (value > all[at]), 0)) : missing;
  };

  const map = heatMap({
    hint: 'Point at a cell, or use the arrow keys; Enter opens a head below.',
    label: () => `${label(on.quantity)} of each head at ${now()} tokens; layers from below, heads from the left`,
    grid: () => {
      const all = values(on.quantity);
      const off = (at) => hidden(on.quantity, at);
      return {rows: run.layers, columns: run.heads, values: all, off, shades, axes: 'layer ↑ head →', chosen: on.head,
        range: all.map((value, at) => (off(at) ? NaN : value)), crossed: (at) => !known(all[at])};
    },
    say: (at) => `${title(at)}: ${said(on.quantity, at)} at ${now()}` +
      (hidden(on.quantity, at) ? ', 0 because the window hides BOS.' : '.'),
    point: (at) => scatter.show(at),
    pick: (at) => choose(at),
  });

  let dots, near, orders;
  const scatter = plot({
    kind: 'scatter',
    hint: 'Point at a dot, or use ← → along x, ↑ ↓ along y.',
    label: () => `${label(on.y)} against ${label(on.x)}, one dot a head, at ${now()} tokens`,
    height: () => 400,
    draw: (pen, width, height) => {
      const byLayer = run.layers.map((_, i) => shades(i / max(1, run.layers.length - 1)));
      dots = points(pen, width, height, {x: values(on.x), y: values(on.y), across: titled(on.x), up: titled(on.y),
        colour: (at) => byLayer[layer(at)]});
      near = nearest(dots.x, dots.y, width, height);
      orders = {};
    },
    mark: (pen, at) => {
      ring(pen, dots, on.head, css('ink'));
      ring(pen, dots, at, css('accent'));
    },
    find: (x, y) => near(x, y),
    step: (key, at) => {
      const [axis, by] =
        {ArrowLeft: ['x', -1], ArrowRight: ['x', 1], ArrowUp: ['y', -1], ArrowDown: ['y', 1]}[key] || [];
      if (!axis) return -1;
      const order = orders[axis] ||= [...dots.x.keys()].filter((i) => dots.x[i] + dots.y[i] >= 0)
        .sort((a, b) => dots[axis][a] - dots[axis][b]);
      const from = order.indexOf(at < 0 ? on.head : at);
      return order[from < 0 ? 0 : min(max(from + by, 0), order.length - 1)] ?? -1;
    },
    say: (at) => `${title(at)}: ${said(on.x, at)}, ${said(on.y, at)}.`,
    point: (at) => map.show(at),
    pick: (at) => choose(at),
  });

  // The page of a head.
  const figure = (text, spec) => {
    const {node, line} = plot(spec);
    return make('div', {}, make('p', {class: 'title'}, text), node, line);
  };
  const course = (head) => {
    const tokens = run.lengths.map(({tokens}) => tokens);
    let line, near;
    return figure(`${titled(on.quantity)}, by context length`, {
      kind: 'line plot',
      hint: 'Point at a dot, or use ← →.',
      label: () => `${label(on.quantity)} of ${title(head)} by context length`,
      height: () => 220,
      draw: (pen, width, height) => {
        line = points(pen, width, height, {x: tokens, y: tokens.map((_, t) => values(on.quantity, t)[head]), up: '',
          across: 'context length, tokens', colour: () => css('accent'), names: run.lengths.map(({label}) => label)});
        near = nearest(line.x, line.y, width, height);
      },
      mark: (pen, t) => ring(pen, line, t, css('ink')),
      find: (x, y) => near(x, y),
      step: (key, t) => {
        const by = {ArrowLeft: -1, ArrowRight: 1}[key];
        return by ? t < 0 ? on.length : min(max(t + by, 0), tokens.length - 1) : -1;
      },
      say: (t) => `${said(on.quantity, head, t)} at ${run.lengths[t].label}.`,
      point: () => {},
      pick: (length) => set({length}),
    });
  };
  const stands = (head) => pairs.map(([x, y]) => {
    const text = `${said(x, head)} (rank ${ranked(x, head)}), ${said(y, head)} (rank ${ranked(y, head)})`;
    let own;
    return figure(text, {
      label: () => `${label(y)} against ${label(x)}: ${text}`,
      height: () => 170,
      draw: (pen, width, height) => {
        own = points(pen, width, height, {x: values(x), y: values(y), across: label(x), up: label(y),
          colour: () => css('soft')});
      },
      mark: (pen) => ring(pen, own, head, css('accent')),
    });
  });
  const sinks = (head) => {
    if (!run.sinks) return make('p', {class: 'absent'}, run.sinks_reason);
    const {rows, at, note, full, mass: total} = run.sinks;
    const mass = (i) => numbers[at + i * run.heads + head % run.heads];
    const own = [...rows.keys()].filter((i) => rows[i][0] === on.length && rows[i][1] === layer(head) && mass(i) > 0)
      .sort((a, b) => mass(b) - mass(a));
    const all = `${said(total, head)} at ${now()}`;
    if (!own.length) return make('p', {class: 'readout'}, `Its ${all}.`);
    return table(`Its ${all}${full[on.length].includes(head) ? ' or more: the list of keys is full' : ''}. By token:` +
      (own.length > 8 ? ` ${own.length - 8} with less mass are left out.` : '') + note,
    2, ['token', 'positions', 'mass', 'chunks'],
    own.slice(0, 8).map((i) => [visible(rows[i][2]), rows[i][3], shown(mass(i)), String(rows[i][4])]));
  };
  const page = box('head');
  const fill = (head) => page.replaceChildren(
    make('h3', {}, title(head)),
    box('pair', course(head), make('div', {}, sinks(head))),
    make('p', {class: 'title'}, `Where it stands among ${count()} heads at ${now()}; rank 1 is the largest.`),
    box('small', ...stands(head)),
    make('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Every statistic'},
      table('Every statistic by context length: means over chunks, as float32.', 1,
        ['statistic', ...run.lengths.map(({label}) => label), `rank at ${now()}`],
        run.quantities.map((_, q) =>
          [titled(q), ...run.lengths.map((__, t) => shown(values(q, t)[head])), ranked(q, head)]))));

  const [controls, axes, note, selects] = [box('choosers'), box('choosers'), make('p', {class: 'lead'}), {}];
  const set = (change) => {
    if ((change.run ?? on.run) !== on.run) {
      run = runs[change.run];
      const spread = (q) => new Set(values(q, run.lengths.length - 1).filter(known)).size > 1;
      pairs = scatters.map((pair) => pair.map((name) => run.quantities.findIndex((one) => one.name === name)))
        .filter((pair) => pair.every((q) => q >= 0 && spread(q)));
      const [x, y] = pairs[0] || [0, 0];
      Object.assign(on, {quantity: 0, length: run.lengths.length - 1, x, y});
      on.head = values(x).reduce((most, value, at, all) => (value > all[most] ? at : most), 0);
      const all = run.quantities.map((_, q) => label(q));
      const add = (text, name, options, then = (to) => set({[name]: to})) => {
        const made = chooser(text, options, then);
        selects[name] = made.select;
        return made.node;
      };
      controls.replaceChildren(
        ...(runs.length > 1 ? [add('Run', 'run', runs.map(({label}) => label))] : []),
        add('Quantity', 'quantity', all),
        add('Length', 'length', run.lengths.map(({label}) => label)),
        add('Layer', 'layer', run.layers, (to) => choose(to * run.heads + on.head % run.heads)),
        add('Head', 'column', [...Array(run.heads).keys()], (to) => choose(layer(on.head) * run.heads + to)));
      axes.replaceChildren(add('x', 'x', all), add('y', 'y', all));
    }
    Object.assign(on, change);
    for (const name in selects) selects[name].value = {layer: layer(on.head), column: on.head % run.heads, ...on}[name];
    note.textContent = `${label(on.quantity)}: ${one(on.quantity).meaning}; mean over ${one(on.quantity).over} and ` +
      `${run.lengths[on.length].chunks} chunks.`;
    fill(on.head);
    redraw();
  };
  const choose = (head) => {
    set({head});
    location.replace('#' + (runs.length > 1 ? `run-${on.run + 1}-` : '') +
      `head-${run.layers[layer(head)]}.${head % run.heads}`);
  };
  place.append(controls, note, box('pair', make('div', {}, map.node, map.line),
    make('div', {}, axes, scatter.node, scatter.line)), page);
  set({run: 0});

  // The address names a head: a link leads to its page.
  const follow = () => {
    const [, which = 1, name, column] = /^#(?:run-(\d+)-)?head-(\d+)\.(\d+)$/.exec(location.hash) || [];
    const asked = runs[which - 1];
    const row = asked ? asked.layers.indexOf(Number(name)) : -1;
    if (row < 0 || column >= asked.heads) return;
    const to = {run: which - 1, head: row * asked.heads + Number(column)};
    if (to.run === on.run && to.head === on.head) return;
    set(to);
    page.scrollIntoView();
  };
  addEventListener('hashchange', follow);
  follow();
};

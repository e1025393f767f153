// SPDX-License-Identifier: Apache-2.0
// What the question page uses of CodeMirror, as one module: `scripts/vendor.sh` bundles it into
// src/discreet/server/static/editor.js.

import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

// Typing over a selection: done here and not by the browser, which would keep the look of what was
// selected in a style attribute, and the content security policy forbids those.
function typeOver(event, view) {
  const { from, to, empty } = view.state.selection.main;
  if (event.inputType !== "insertText" || !event.data || empty || view.composing) return false;
  event.preventDefault();
  const insert = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type" });
  const handlers = view.state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, from, to, event.data, insert))) view.dispatch(insert());
  return true;
}

// An editor of SQL in `parent`. `nonce` is the nonce of the page's content security policy, `schema`
// maps tables to their columns, `label` is read by screen readers, and `change` gets every new text.
export function makeEditor({ parent, text, nonce, schema, label, describedBy, change, submit }) {
  const ask = () => (submit(), true);
  return new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorView.cspNonce.of(nonce),
        keymap.of([{ key: "Mod-Enter", run: ask }]),
        lineNumbers(),
        history(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false }),
        syntaxHighlighting(classHighlighter),
        sql({ dialect: PostgreSQL, schema, upperCaseKeywords: true }),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, ...lintKeymap]),
        EditorView.lineWrapping,
        EditorView.domEventHandlers({ beforeinput: typeOver }),
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": describedBy }),
        EditorView.updateListener.of((update) => update.docChanged && change(update.state.doc.toString())),
      ],
    }),
  });
}

// Replaces the whole text.
export function replaceText(view, text) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}

// Underlines a part of a line, counted from 1 and from column 1; nothing is underlined without `where`.
export function underline(view, where, message) {
  const marks = [];
  if (where && where.line >= 1 && where.line <= view.state.doc.lines) {
    const line = view.state.doc.line(where.line);
    const from = Math.min(line.from + where.from - 1, line.to);
    marks.push({ from, to: Math.min(Math.max(from + 1, line.from + where.to - 1), line.to), severity: "error", message });
  }
  view.dispatch(setDiagnostics(view.state, marks));
}

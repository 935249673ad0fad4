;;; Run the steps of a file in Emacs, and write their results: IRRUN_STEPS and IRRUN_RESULTS name the files.
(require 'package)
(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa") ; where Debian puts packages
(package-initialize)
(require 'eglot)

(setq large-file-warning-threshold nil
      eglot-sync-connect 400
      eglot-connect-timeout 400
      eglot-events-buffer-size 0
      create-lockfiles nil
      auto-mode-alist nil)
(defvar patience 400) ; seconds

;; nxml-mode would parse the file as well
(define-derived-mode irrun-mode fundamental-mode "irrun")
(add-to-list 'eglot-server-programs '((irrun-mode :language-id "xml") . ("irrun" "server")))
(find-file (getenv "IRRUN_MODEL"))
(irrun-mode)
(buffer-disable-undo)
(call-interactively 'eglot)

(defun irrun-findings ()
  (mapcar (lambda (found)
            (vector (1- (line-number-at-pos (flymake-diagnostic-beg found) t)) (flymake-diagnostic-text found)))
          (flymake-diagnostics)))

(defun irrun-edit (step)
  (save-excursion
    (goto-char (point-min))
    (forward-line (plist-get step :line))
    (let ((start (+ (point) (plist-get step :start)))
          (end (+ (point) (plist-get step :end))))
      (delete-region start end)
      (goto-char start)
      (insert (plist-get step :text))))
  (eglot--signal-textDocument/didChange))

(defun irrun-run (step)
  (if (plist-get step :method)
      (jsonrpc-request (eglot-current-server) (intern (concat ":" (plist-get step :method)))
                       (plist-get step :params) :timeout patience)
    (when (plist-get step :text) (irrun-edit step))
    (let ((end (+ (float-time) patience)))
      (while (and (/= (length (flymake-diagnostics)) (plist-get step :findings)) (< (float-time) end))
        (accept-process-output nil 0.02)))
    (vconcat (irrun-findings))))

(flymake-mode 1)
(flymake-start)
(let ((steps (with-temp-buffer
               (insert-file-contents (getenv "IRRUN_STEPS"))
               (json-parse-buffer :object-type 'plist :array-type 'array :null-object nil :false-object :json-false)))
      (results nil))
  (seq-doseq (step steps) (push (irrun-run step) results))
  (with-temp-file (getenv "IRRUN_RESULTS")
    (insert (json-serialize (vconcat (nreverse results)) :null-object nil :false-object :json-false))))
(eglot-shutdown (eglot-current-server) nil 60)

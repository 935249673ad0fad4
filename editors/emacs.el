;;; Start `irrun server' for XML files with eglot, which Emacs 29 contains and a package adds to older ones.
;;; Load this file from ~/.emacs.d/init.el.  The server shows nothing for XML that is no OpenVINO IR.

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '((nxml-mode xml-mode) . ("irrun" "server"))))
(add-hook 'nxml-mode-hook 'eglot-ensure)

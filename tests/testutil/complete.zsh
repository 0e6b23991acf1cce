# complete.zsh SCRIPT FOLDER LINE...: types each line in an interactive zsh on a terminal of its own that has loaded
# the completion script, presses Tab, and prints what then stands there.
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "autoload -Uz compinit; compinit -u -D; source $1; cd $2; show() { print -r -- \"<<\$BUFFER>>\" }; zle -N show; bindkey '^B' show; PS1='RE''ADY> '"
zpty -r z out '*READY> *'
shift 2
for line; do
  zpty -n -w z "$line"$'\t\x02\x15'
  zpty -r z out '*<<*>>*'
  print -r -- ${${out#*<<}%%>>*}
done
zpty -d z

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Completion of lab, for bash: `. tools/lab/completion.bash`. What there is to choose from is read
# from lab's own help, so that it is what lab takes.

_lab() {
	local lab=$1 word=$2 before=$3 verb='' help words='' i

	for ((i = 1; i < COMP_CWORD; i++)); do
		# Behind it stands another program's.
		[ "${COMP_WORDS[i]}" = -- ] && return
		case ${COMP_WORDS[i]} in
		-*) ;;
		*) verb=${verb:-${COMP_WORDS[i]}} ;;
		esac
	done
	help=$("$lab" ${verb:+"$verb"} --help 2>/dev/null) || return
	if [[ $before = --* ]]; then
		words=$(sed -n "s/^ .*$before {\([^}]*\)}.*/\1/p" <<<"$help" | tr , ' ')
	fi
	if [ "$words" ]; then
		:
	elif [[ $word = -* ]]; then
		words=$(grep -oE '(^|[ ,[])--?[a-z][a-z-]*' <<<"$help" | tr -d '[, ')
	elif [ -z "$verb" ]; then
		words=$(sed -n 's/^    \([a-z]\+\) .*/\1/p' <<<"$help")
	elif [ "$verb" = check ]; then
		words=$("$lab" check '?' 2>&1 | sed -n 's/.*; the stages are //p' | tr -d ,)
	elif [ "$verb" = exec ]; then
		words=$("$lab" exec '?' 2>&1 | sed -n 's/.*; its guests are //p' | tr -d ,)
	elif [ "$verb" = down ]; then
		words=$("$lab" down '?' 2>&1 | sed -n 's/.*; up: //p' | tr -d ,)
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _lab lab

# SPDX-License-Identifier: LGPL-2.1-or-later
# The few macros configure.ac needs of its own.

# MF_FEATURE(NAME, DEFAULT, HELP) - --enable-NAME with its default and help in one place.
AC_DEFUN([MF_FEATURE], [
AC_ARG_ENABLE([$1],
	[AS_HELP_STRING([--enable-$1], [$3 @<:@$2@:>@])],
	[AS_CASE([$enableval], [yes|no], [], [AC_MSG_ERROR([--enable-$1 takes yes or no])])],
	[AS_VAR_SET([enable_]m4_translit([$1], [-], [_]), [$2])])
])

# MF_ADD_CFLAGS(FLAGS) - adds each flag to MF_CFLAGS if the compiler knows it.
# -Werror, because some compilers only warn about what they do not know.
AC_DEFUN([MF_ADD_CFLAGS], [
for mf_flag in $1; do
	AS_VAR_PUSHDEF([mf_cache], [mf_cv_cflag_$mf_flag])
	AC_CACHE_CHECK([whether $CC knows $mf_flag], [mf_cache], [
		mf_saved_CFLAGS=$CFLAGS
		CFLAGS="-Werror $mf_flag"
		AC_COMPILE_IFELSE([AC_LANG_SOURCE([[extern int mf_probe; int mf_probe;]])],
			[AS_VAR_SET([mf_cache], [yes])], [AS_VAR_SET([mf_cache], [no])])
		CFLAGS=$mf_saved_CFLAGS
	])
	AS_VAR_IF([mf_cache], [yes], [MF_CFLAGS="$MF_CFLAGS $mf_flag"])
	AS_VAR_POPDEF([mf_cache])
done
])

# MF_CHECK_LINK(FLAGS, IF-YES, IF-NO) - whether a library function links with FLAGS.
AC_DEFUN([MF_CHECK_LINK], [
AC_MSG_CHECKING([whether $CC links with $1])
mf_saved_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $1"
AC_LINK_IFELSE([AC_LANG_PROGRAM([[]], [[return 0;]])], [mf_links=yes], [mf_links=no])
CFLAGS=$mf_saved_CFLAGS
AC_MSG_RESULT([$mf_links])
AS_IF([test "x$mf_links" = xyes], [m4_default([$2], [:])], [m4_default([$3], [:])])
])

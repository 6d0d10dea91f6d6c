{#- Each kind of change of a table leads to `rebuild`, `changes` (a change set) or `unchanged`. A project that wants it
    otherwise has a macro of the same name.

    Args:
      change: `kind`, the last part of the macro's name, and `detail`, the change in words -#}
{% macro openmirroring__mirror_on_columns_added(change) %}{{ return('changes') }}{% endmacro %}
{% macro openmirroring__mirror_on_columns_reordered(change) %}{{ return('unchanged') }}{% endmacro %}
{% macro openmirroring__mirror_on_spark_types_changed(change) %}{{ return('unchanged') }}{% endmacro %}
{% macro openmirroring__mirror_on_declared_columns_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_columns_dropped(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_column_case_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_column_types_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_key_columns_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_landing_format_changed(change) %}{{ return('rebuild') }}{% endmacro %}
{% macro openmirroring__mirror_on_keyless_rows_gone(change) %}{{ return('rebuild') }}{% endmacro %}


{#- Whether rows are few enough for one task, which is faster then than to bring them to several.

    Args:
      bytes: of a table; none if nobody knows
      rows: of another table, if it takes part -#}
{% macro openmirroring__mirror_is_small(bytes, rows) %}
  {{ return(bytes is not none and bytes <= 4 * 1024 * 1024 and rows <= 1000000) }}
{% endmacro %}

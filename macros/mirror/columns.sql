{#- What lands of a column (specification, "Column types"): its type in the mirror, and the SQL that yields it.

    Args:
      column: of a snapshot
      source: the SQL of the column, if not its name -#}
{% macro mirror_landing(column, source=none) %}
  {{ return(adapter.dispatch('mirror_landing', 'dbt')(column, source or column.quoted)) }}
{% endmacro %}

{% macro openmirroring__mirror_landing(column, source) %}
  {%- set type = column.dtype | lower -%}
  {%- if type.startswith(('array<', 'map<', 'struct<', 'variant')) -%}
    {#- complex types land as JSON -#}
    {{ return({'type': 'string', 'value': adapter.json_text(column, source)}) }}
  {%- elif type == 'timestamp_ntz' -%}
    {#- an instant in UTC, whatever the session's time zone: a cast would read it in that one -#}
    {{ return({'type': 'timestamp', 'value':
      "timestamp_micros(cast(cast(cast(" ~ source ~ " - timestamp_ntz'1970-01-01 00:00:00' as interval second) "
      ~ "as decimal(20, 6)) * 1000000 as bigint))"
    }) }}
  {%- elif type.startswith(('geometry(', 'geography(')) -%}
    {#- well-known binary: it has no reference system -#}
    {{ return({'type': 'binary', 'value': "st_asbinary(" ~ source ~ ")"}) }}
  {%- elif type.startswith(('string collate', 'char(', 'varchar(')) -%}
    {{ return({'type': 'string', 'value': "cast(" ~ source ~ " as string)"}) }}
  {%- elif type in ('boolean', 'tinyint', 'smallint', 'int', 'bigint', 'float', 'double', 'string', 'binary', 'date', 'timestamp')
      or type.startswith(('decimal(', 'time(')) -%}
    {{ return({'type': type, 'value': source}) }}
  {%- endif -%}
  {%- do exceptions.raise_compiler_error(
    'The column ' ~ column.quoted ~ ' has the type ' ~ type ~ ', which cannot be mirrored. Cast it in the model, e.g. cast('
    ~ column.quoted ~ ' as string).'
  ) -%}
{% endmacro %}


{#- What lands of some columns, comma separated. -#}
{% macro mirror_landing_columns(columns) %}
  {%- for column in columns %}
      {{ mirror_landing(column).value }} as {{ column.quoted }} {{- ',' if not loop.last }}
  {%- endfor -%}
{% endmacro %}


{#- A digest of a row, in the columns `d0` and `d1`: two rows are the same if these are.

    xxhash64 skips NULLs, so that they could move from one column to another, and takes -0.0 for 0.0: both are
    hashed besides the values. To compare a row with the one of the same key, a hash of 64 bits is enough: one
    changed row in 2^64 is taken for an unchanged one. To find a row among all others it takes two, with
    different seeds.

    Args:
      columns: of the next snapshot, in its order
      present: those that the rows have, by name; a column that was added is NULL in the snapshot
      hashes: 1 or 2 -#}
{% macro mirror_digest(columns, present, hashes) %}
  {{ return(adapter.dispatch('mirror_digest', 'dbt')(columns, present, hashes)) }}
{% endmacro %}

{% macro openmirroring__mirror_digest(columns, present, hashes) %}
  {%- set values = [] -%}
  {%- for some in columns | batch(60) -%}
    {#- which of them are NULL: a bit for each -#}
    {%- set bits = [] -%}
    {%- for column in some -%}
      {%- set bit = 2 ** loop.index0 -%}
      {%- do bits.append('if(' ~ column.quoted ~ ' is null, ' ~ bit ~ ', 0)' if column.name in present else bit | string) -%}
    {%- endfor -%}
    {%- do values.append(bits | join(' | ')) -%}
  {%- endfor -%}
  {%- for column in columns -%}
    {%- if column.name in present -%}
      {%- set value = mirror_landing(present[column.name]).value -%}
      {%- do values.append(value) -%}
      {%- if column.dtype in ('float', 'double') -%}
        {%- do values.append('(' ~ value ~ " = 0 and cast(" ~ value ~ " as string) like '-%')") -%}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for seed in range(hashes) -%}
    xxhash64({{ ([seed] + values) | join(', ') }}) as d{{ seed }} {{- ', ' if not loop.last }}
  {%- endfor -%}
{% endmacro %}


{#- A value in another type. What cannot be cast is an error, in ANSI mode or not. -#}
{% macro mirror_cast(value, type) -%}
  {%- set cast_value = 'try_cast(' ~ value ~ ' as ' ~ type ~ ')' -%}
  case
    when {{ value }} is not null and {{ cast_value }} is null
    {%- if (type | lower).startswith(('array<', 'map<', 'struct<')) %}
      {#- what cannot be cast in it becomes NULL in it #}
      or {{ mirror_count_nulls(cast_value) }} > {{ mirror_count_nulls(value) }}
    {%- endif %}
    then cast(raise_error(concat('{{ mirror_literal(value) }} has the value ''', cast({{ value }} as string), ''', which is no {{ mirror_literal(type) }}')) as {{ type }})
    else {{ cast_value }}
  end
{%- endmacro %}


{#- How many NULLs are in a complex value: those of its JSON without its strings, and these without what is escaped in them. -#}
{% macro mirror_count_nulls(value) -%}
  regexp_count(regexp_replace(replace(replace(to_json({{ value }}, map('ignoreNullFields', 'false')), '\\\\', ''), '\\"', ''), '"[^"]*"', ''), 'null')
{%- endmacro %}

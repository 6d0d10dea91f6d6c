{#- 4. Rows as lines of delimited text (specification, "Delimited text requirements").

    The lines are made here and written as text: Spark's csv writer cannot tell NULL from text for every quote and
    escape, and it changes what it cannot spell. Text is always quoted and NULL never, so one is not taken for the other.

    Args:
      rows: a query, with what lands of each column
      rows_per_file: 0 for no limit -#}
{% macro openmirroring__mirror_lines(rows, columns, plan, rows_per_file) %}
  {%- set text = plan.text -%}
  {%- set names, values = [], [] -%}
  {%- for column in columns -%}
    {%- do names.append(mirror_quoted_text("'" ~ mirror_literal(column.name) ~ "'", 'The name of the column ' ~ column.name, text)) -%}
    {%- do values.append(mirror_field(column, text)) -%}
  {%- endfor -%}
  {%- if plan.is_marked -%}
    {%- do names.append(mirror_quoted_text("'__rowMarker__'", '', text)) -%}
    {%- do values.append('cast(`__rowMarker__` as string)') -%}
  {%- endif -%}
  {%- set header = "concat(cast(x'" ~ text.byte_order_mark ~ "' as string), " ~ mirror_encoded(mirror_line(names, text), text) ~ ')' -%}
  {%- if not plan.row_count %}
  select {{ header }} as line
  {%- else %}
  {#- a file begins with the first row of a partition, and again after rows_per_file; the lower 33 bits are the row's number in its partition -#}
  {%- set position = '(monotonically_increasing_id() & 8589934591)' %}
  select
    if(
      {{ position ~ (' % ' ~ rows_per_file if rows_per_file else '') }} = 0,
      concat({{ header }}, '{{ mirror_literal(text.encoded_row_separator) }}', line),
      line
    ) as line
  from (
    select {{ mirror_encoded(mirror_line(values, text), text) }} as line
    from (
      {{ rows }}
    )
  )
  {%- endif -%}
{% endmacro %}

{% macro mirror_line(values, text) %}
  {{- return("concat_ws('" ~ mirror_literal(text.column_separator) ~ "', " ~ values | join(', ') ~ ')') -}}
{% endmacro %}


{#- A value as it stands in a line. -#}
{% macro mirror_field(column, text) %}
  {%- set name = column.quoted -%}
  {%- set value = 'cast(' ~ name ~ ' as string)' -%}
  {%- if column.landed_type in ('string', 'binary') -%}
    {%- set value = mirror_quoted_text(value, 'A value of the column ' ~ column.name, text) -%}
  {%- elif column.landed_type == 'timestamp' -%}
    {#- in UTC, whatever the time zone of the session -#}
    {%- set value = "cast(timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, cast(unix_micros(" ~ name
      ~ ') as decimal(20, 0)) / 1000000) as string)' -%}
  {%- endif -%}
  {{ return('coalesce(' ~ value ~ ", '" ~ mirror_literal(text.null_value) ~ "')") }}
{% endmacro %}


{#- Text in quotes, or an error if it cannot be spelled. -#}
{% macro mirror_quoted_text(value, label, text) %}
  {%- set quote, escape = text.quote_character, text.escape_character -%}
  {%- if not quote -%}
    {%- set special = [text.column_separator, '\r', '\n'] + ([escape] if escape else []) -%}
    {%- set conditions = [value ~ " = '" ~ mirror_literal(text.null_value) ~ "'"] -%}
    {%- for character in special -%}
      {%- do conditions.append('contains(' ~ value ~ ", '" ~ mirror_literal(character) ~ "')") -%}
    {%- endfor -%}
    {{ return(mirror_refused_if(conditions | join(' or '), label
      ~ ' would end too soon, or be taken for NULL. Set delimited.quote_character', 'OM315', value)) }}
  {%- elif not escape -%}
    {{ return(mirror_refused_if('contains(' ~ value ~ ", '" ~ mirror_literal(quote) ~ "')", label
      ~ ' has the quote character in it. Set delimited.escape_character', 'OM316', mirror_enclosed(value, quote))) }}
  {%- endif -%}
  {%- set escaped = mirror_doubled(value, escape, escape) -%}
  {{ return(mirror_enclosed(escaped if quote == escape else mirror_doubled(escaped, quote, escape), quote)) }}
{% endmacro %}

{% macro mirror_doubled(value, character, escape) %}
  {{- return('replace(' ~ value ~ ", '" ~ mirror_literal(character) ~ "', '" ~ mirror_literal(escape ~ character) ~ "')") -}}
{% endmacro %}

{% macro mirror_enclosed(value, quote) %}
  {{- return("concat('" ~ mirror_literal(quote) ~ "', " ~ value ~ ", '" ~ mirror_literal(quote) ~ "')") -}}
{% endmacro %}


{#- A line in the encoding of the files, or an error if it has characters that it lacks. -#}
{% macro mirror_encoded(line, text) %}
  {%- if not text.charset -%}
    {{ return(line) }}
  {%- endif -%}
  {%- set translated = 'translate(' ~ line ~ ", '" ~ text.translation[0] ~ "', '" ~ text.translation[1] ~ "')" if text.translation else line -%}
  {%- set encoded = 'cast(encode(' ~ translated ~ ", '" ~ text.charset ~ "') as string)" -%}
  {%- if not text.unencodable -%}
    {{ return(encoded) }}
  {%- endif -%}
  {{ return(mirror_refused_if(line ~ " rlike '" ~ mirror_literal(text.unencodable) ~ "'",
    'A row has a character that ' ~ text.encoding ~ ' does not have. Set another delimited.encoding, e.g. UTF-8', 'OM317', encoded)) }}
{% endmacro %}

{% macro mirror_refused_if(condition, message, code, value) %}
  {%- set told = adapter.with_code(message ~ '. Nothing was published.', code) -%}
  {{- return('if(' ~ condition ~ ", raise_error('" ~ mirror_literal(told) ~ "'), " ~ value ~ ')') -}}
{% endmacro %}


{#- The options of the text writer; none for Parquet. Only the separator of rows that is between encoded lines. -#}
{% macro mirror_text_options(text) %}
  {{- return(", lineSep '" ~ mirror_literal(text.encoded_row_separator) ~ "'" if text else '') -}}
{% endmacro %}


{#- The lines of staged files, as a temporary view, which the next one replaces. -#}
{% macro openmirroring__mirror_staged_lines(url, plan) %}
  {%- set text = plan.text -%}
  {%- set columns = [] -%}
  {%- for _ in plan.definition.columns -%}{%- do columns.append('c' ~ loop.index0 ~ ' string') -%}{%- endfor -%}
  {%- if plan.is_marked -%}{%- do columns.append('marker int') -%}{%- endif -%}
  create or replace temporary view openmirroring_staged ({{ columns | join(', ') }}) using csv options (
    'path' '{{ mirror_literal(mirror_no_pattern(url)) }}',
    'header' 'true',
    'multiLine' 'true',
    'sep' '{{ mirror_literal(text.column_separator) }}',
    'lineSep' '{{ mirror_literal(text.row_separator) }}',
    'quote' '{{ mirror_literal(text.quote_character) }}',
    'escape' '{{ mirror_literal(text.escape_character) }}',
    'encoding' '{{ text.reader_charset }}'
  )
{% endmacro %}

{#- Their rows by file and row marker. -#}
{% macro openmirroring__mirror_count_lines(plan) %}
  select file, marker, count(*) as found
  from (
    select regexp_extract(input_file_name(), '[^/]*$', 0) as file, {{ 'marker' if plan.is_marked else 'cast(null as int) as marker' }}
    from openmirroring_staged
  )
  group by file, marker
{% endmacro %}

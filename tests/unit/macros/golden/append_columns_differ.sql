select
    DBT_INTERNAL_DEST.`id` as `id`,
    DBT_INTERNAL_DEST.`status` as `status`,
    cast(null as double) as `added`,
    DBT_INTERNAL_DEST.`missing` as `missing`,
    DBT_INTERNAL_DEST.`kept` as `kept`,
    DBT_INTERNAL_DEST.`it's ``odd``` as `it's ``odd``` from `shop`.`orders` as DBT_INTERNAL_DEST
  union all
  select
    DBT_INTERNAL_SOURCE.`id` as `id`,
    DBT_INTERNAL_SOURCE.`status` as `status`,
    DBT_INTERNAL_SOURCE.`added` as `added`,
    cast(null as int) as `missing`,
    DBT_INTERNAL_SOURCE.`kept` as `kept`,
    DBT_INTERNAL_SOURCE.`it's ``odd``` as `it's ``odd``` from `shop`.`new_rows` as DBT_INTERNAL_SOURCE

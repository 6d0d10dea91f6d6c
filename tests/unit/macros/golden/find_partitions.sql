alter table `shop`.`it's ``odd``` recover partitions
